"""Bytes of a client come in; requests go to the application, and clients that are too slow or too odd are let go.

The server has no limit of its own for how long a request's head may take, or for a client that stops reading its
answer. (docs/decisions/0143)
"""

import asyncio
import json
import socket
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from service import wording

HEAD_SECONDS = 20.0  # for a request to begin on an open connection, its head complete
STALLED_SECONDS = 30.0  # for a client to take what is sent to it
HEAD_BYTES = 32 * 2**10
KEEP_ALIVE_SECONDS = 15


class PatientConnection(H11Protocol):
    """A connection with deadlines for both directions; its 400s are problems like all others."""

    head_seconds = HEAD_SECONDS
    stalled_seconds = STALLED_SECONDS
    _head: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        _send_at_once(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._answering():
            _cancel(self._head)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and not self._answering():
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._head)
        _cancel(self._stalled)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(self.stalled_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        _cancel(self._stalled)
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, as far as an answer is possible, and close."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # an answer has begun
            self.transport.close()
            return
        code = "bad_request"
        problem: dict[str, Any] = {
            "type": f"/problems/{code}",
            "title": "Bad Request",
            "status": 400,
            "detail": wording.HTTP_UNREADABLE,
            "code": code,
            "message": wording.HTTP_UNREADABLE,
            "path": "",
            "request_id": "",
        }
        body = json.dumps(problem).encode()
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(body)).encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"connection", b"close"),
        ]
        for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _await_head(self) -> None:
        _cancel(self._head)
        self._head = self.loop.call_later(self.head_seconds, self._give_up_on_head)

    def _give_up_on_head(self) -> None:
        if not self._answering():
            self.transport.abort()


def _send_at_once(transport: asyncio.Transport) -> None:
    """Let an answer's body not wait until its head is acknowledged, which takes 40 ms. asyncio sees to that where it
    opens the socket itself, not on one that is handed to the server."""
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
