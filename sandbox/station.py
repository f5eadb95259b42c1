"""A connection to one supervisor: frames go out and come in, each within a time; its loss is told apart from errors.

`Line` is the raw connection and what must be known when it breaks; `DockerLine` and `ProcessLine` make them.
"""

import secrets
import select
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sandbox.errors import EngineFailed
from sandbox.package import package_of_modules, package_of_suites
from sandbox.records import Module, SuiteFolder
from sandbox.wire import Frames, Header, WireError, encode, expect, source_digest

SOURCES = source_digest(Path(__file__).parent)
START_SECONDS = 60.0
SEND_SECONDS = 30.0
RECEIVE_BYTES = 1 << 18
UID_INDEXES = 1 << 22


class Lost(Exception):
    """The supervisor is gone, or silent, or does not speak the protocol."""


@dataclass(frozen=True)
class Loss:
    """What is known about the end of a line: whether memory ran out, and words for our log."""

    out_of_memory: bool
    text: str


class Line(Protocol):
    def send(self, data: bytes, until: float) -> None:
        """Raises Lost if it cannot be done by then (time.monotonic)."""
        ...

    def receive(self, until: float) -> bytes:
        """At least one byte; raises Lost if none comes by then or none can come any more."""
        ...

    def is_quiet(self) -> bool:
        """Whether nothing has come and the other side is still there, as while it is asked for nothing."""
        ...

    def hasten(self) -> None:
        """Give what is behind the line its full part of the cores: it has started."""
        ...

    def memory_events(self) -> int:
        """How often the engine has said by now that memory ran out behind this line."""
        ...

    def kill(self) -> None:
        """End the supervisor at once; any thread may."""
        ...

    def close(self) -> Loss:
        """Remove everything behind the line, and say what is known about its end."""
        ...


@dataclass(frozen=True)
class Versions:
    python: str
    numpy: str
    pytest: str
    hypothesis: str
    libraries: dict[str, str]  # of the runtime


class Station:
    """A supervisor that has answered, and serves one session."""

    def __init__(self, line: Line, start_seconds: float = START_SECONDS) -> None:
        """Raises Lost if it does not answer, WireError if it was built from other sources than ours."""
        self.line = line
        self._nonce = secrets.token_hex(16)
        self._frames = Frames()
        self._received: list[tuple[Header, bytes]] = []
        self.send("open", b"", uid_index=secrets.randbelow(UID_INDEXES))
        header, _ = self.receive("ready", time.monotonic() + start_seconds)
        expect(header, sources=str, python=str, numpy=str, pytest=str, hypothesis=str, libraries=dict)
        if header.pop("sources") != SOURCES:
            raise WireError("the sandbox was built from other sources than those that use it")
        self.versions = Versions(**header)
        self._modules: tuple[Module, ...] = ()
        self.suites: tuple[SuiteFolder, ...] = ()
        """those that were made ready, or are being: runs name them by their place"""

    def can_serve(self, modules: Sequence[Module]) -> bool:
        """Whether no modules were imported yet, or just these."""
        return self._modules in ((), tuple(modules))

    def preload(self, modules: Sequence[Module]) -> None:
        """Import trusted modules in the template, unless they are. Raises EngineFailed if one cannot be imported."""
        if self._modules == tuple(modules):
            return
        self._modules = tuple(modules)
        self.send("preload", package_of_modules(modules, self.versions.python))
        header, _ = self.receive("preloaded", time.monotonic() + START_SECONDS)
        if error := expect(header, error=str)["error"]:
            raise EngineFailed(f"a trusted module cannot be imported in the sandbox: {error}")

    def prepare(self, suites: Sequence[SuiteFolder]) -> None:
        """Have suites made ready that are not yet; runs that are sent meanwhile wait for it."""
        missing = tuple(suite for suite in suites if suite not in self.suites)
        if missing:
            self.suites += missing
            self.send("prepare", package_of_suites(missing))

    def send(self, frame: str, body: bytes, **fields: object) -> None:
        data = encode({"frame": frame, "nonce": self._nonce, **fields}, body)
        self.line.send(data, time.monotonic() + SEND_SECONDS)

    def receive(self, frame: str, until: float) -> tuple[Header, bytes]:
        """The next frame, which must be of this kind, without the fields common to all."""
        try:
            while not self._received:
                self._received += self._frames.feed(self.line.receive(until))
            header, body = self._received.pop(0)
            if header.pop("frame", None) != frame or header.pop("nonce", None) != self._nonce:
                raise WireError("a frame that was not expected")
        except WireError as error:
            raise Lost(f"not our protocol: {error}") from error
        return header, body


class SocketLine:
    """The part of a line that is a socket."""

    def __init__(self, connection: socket.socket, unpack: Callable[[bytes], bytes] = bytes) -> None:
        self._connection = connection
        self._unpack = unpack

    def send(self, data: bytes, until: float) -> None:
        view = memoryview(data)
        while view:
            view = view[self._within(until, lambda part: self._connection.send(part), view[: 1 << 20]) :]

    def receive(self, until: float) -> bytes:
        while True:
            data = self._within(until, self._connection.recv, RECEIVE_BYTES)
            if not data:
                raise Lost("the connection ended")
            if unpacked := self._unpack(data):
                return unpacked

    def is_quiet(self) -> bool:
        try:
            return not select.select([self._connection], [], [], 0)[0]
        except (OSError, ValueError):
            return False

    def _within(self, until: float, operation: Callable[[Any], Any], argument: object) -> Any:
        left = until - time.monotonic()
        if left <= 0:
            raise Lost("no answer in time")
        try:
            self._connection.settimeout(left)
            return operation(argument)
        except TimeoutError as error:
            raise Lost("no answer in time") from error
        except (OSError, ValueError) as error:
            raise Lost(f"the connection broke: {error}") from error
