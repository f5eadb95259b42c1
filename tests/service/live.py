"""An application goes in; it answers on a real socket with the product's own server, in a thread of this process."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastapi import FastAPI

from service.settings import Settings
from service.web import Server, config

PATIENCE_SECONDS = 60.0


class Live:
    """`url` is where it answers: with a certificate and its key, by TLS."""

    def __init__(self, app: FastAPI, settings: Settings, certificate: Path | None = None) -> None:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}"
        wanted = config(app, settings, "127.0.0.1", self.port)
        wanted.ssl_certfile = certificate  # a file with both
        self.server = Server(wanted)
        self._thread = threading.Thread(target=self.server.run, args=([self._socket],), name="live")
        self._thread.start()
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while not self.server.started:
            assert time.monotonic() < give_up_at
            time.sleep(0.01)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_SECONDS)

    def stop(self) -> None:
        self.server.stop()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()
        self._socket.close()


@contextmanager
def live(app: FastAPI, settings: Settings, certificate: Path | None = None) -> Iterator[Live]:
    running = Live(app, settings, certificate)
    try:
        yield running
    finally:
        running.stop()
