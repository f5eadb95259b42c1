"""Who is told of grades, as far as a test needs it: a gradebook that keeps the rules of platforms, a web server."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from service.outbox.backoff import Kind, Outcome
from service.outbox.deliveries import Claimed

ARRIVED = Outcome(Kind.ARRIVED, 200)
REFUSED = Outcome(Kind.REFUSED, 404, "there is no such line item")
SILENT = Outcome(Kind.LATER, message="it did not answer", may_have_arrived=True, of_all=True)
BUSY = Outcome(Kind.LATER, 429, "it has too much to do", retry_after_seconds=1_000.0, of_all=True)


@dataclass
class Gradebook:
    """A platform's column of grades: of two messages about one student the later one stands, and an older one, or one
    as old, is refused, as Moodle does, which compares whole seconds. `faults` are what happens instead, in turn."""

    scores: dict[str, dict[str, object]] = field(default_factory=dict)
    posts: list[dict[str, object]] = field(default_factory=list)
    faults: list[Callable[[Claimed], Outcome | None]] = field(default_factory=list)

    def __call__(self, claimed: Claimed) -> Outcome:
        if self.faults and (said := self.faults.pop(0)(claimed)) is not None:
            return said
        return self.take(claimed)

    def take(self, claimed: Claimed) -> Outcome:
        message = dict(claimed.message)
        self.posts.append(message)
        held = self.scores.get(claimed.delivery.recipient)
        if held is not None and int(held["timestamp"]) >= int(message["timestamp"]):
            return Outcome(Kind.STALE, 409, "there is a later one")
        self.scores[claimed.delivery.recipient] = message
        return ARRIVED

    def given(self, recipient: str) -> object:
        return self.scores[recipient].get("given")


class Receiver:
    """A web server that remembers what is posted to it. `answers` are (status, headers), the last one for ever; each
    comes after so many seconds."""

    def __init__(self, *answers: tuple[int, dict[str, str]], seconds: float = 0.0) -> None:
        self.answers = list(answers) or [(204, {})]
        self.received: list[tuple[str, dict[str, str], bytes]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.received.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                time.sleep(seconds)
                status, headers = outer.answers[0] if len(outer.answers) == 1 else outer.answers.pop(0)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = int(self._server.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def __enter__(self) -> "Receiver":
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
