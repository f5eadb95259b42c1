"""An address that somebody else named goes in; a connection to it comes out, or `Unreachable`.

Whoever names an address could have us ask a machine that only we can reach. So a host is looked up once, every address
it has must be public, and the connection is made to that very address: what the name means a moment later does not
matter. Hosts that the operator lists may be private. Nothing follows a redirect. Receivers of callbacks and learning
platforms are reached this way. (docs/decisions/0203, 0230)
"""

import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpcore

from service.outbox import wording
from service.settings import Settings

CONNECT_SECONDS = 5.0
WHOLE_SECONDS = 20.0  # of a request, whatever the other side does
BODY_BYTES = 64 * 2**10  # of an answer, the rest is not read

_USUAL = {"http": 80, "https": 443}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

Lookup = Callable[[str, int], Iterable[str]]
"""A host and a port -> its addresses. Raises OSError."""


class Unreachable(Exception):
    """Nothing is sent there; the message says why."""


@dataclass(frozen=True)
class Answer:
    """What came back: the first bytes of the body, and whether it was `cut` there; headers by lower-case names."""

    status: int
    body: bytes
    cut: bool
    headers: Mapping[str, str]

    @property
    def retry_after(self) -> str:
        """The header as it was sent, '' without one."""
        return self.headers.get("retry-after", "")


@dataclass(frozen=True)
class Reach:
    """Where requests may go: to `listed` hosts (or host:port), and to any public host by https, unless hosts are listed
    and those `only`. `setting` is the variable that lists them."""

    listed: frozenset[str] = frozenset()
    only: bool = True
    setting: str = "AUTOGRADER_CALLBACK_HOSTS"

    @classmethod
    def of_callbacks(cls, settings: Settings) -> "Reach":
        return cls(_names(settings.callback_hosts))

    @classmethod
    def of_platforms(cls, settings: Settings) -> "Reach":
        return cls(_names(settings.platform_hosts), only=False, setting="AUTOGRADER_PLATFORM_HOSTS")

    def check_url(self, url: str) -> None:
        """Raises Unreachable for an address that is refused whatever its name means."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise Unreachable(wording.not_an_address()) from error
        odd = not host or parts.username is not None or parts.password is not None
        if odd or parts.scheme not in _USUAL or not (url.isascii() and url.isprintable() and " " not in url):
            raise Unreachable(wording.not_an_address())
        assert host is not None
        if self.lists(host, port or _USUAL[parts.scheme]):
            return
        if self.listed and self.only:
            raise Unreachable(wording.not_listed(host))
        if parts.scheme != "https":
            raise Unreachable(wording.not_https(host, self.setting))
        if _is_literal(host) and not is_public(host):
            raise Unreachable(wording.private(host, self.setting))

    def lists(self, host: str, port: int) -> bool:
        return host in self.listed or f"{host}:{port}" in self.listed

    def addresses(self, host: str, port: int, lookup: Lookup) -> list[str]:
        """Where the host is to be found. Raises Unreachable if it is not, or may not be asked."""
        try:
            found = list(dict.fromkeys(lookup(host, port)))
        except (OSError, UnicodeError) as error:
            raise Unreachable(wording.not_found(host)) from error
        if not found:
            raise Unreachable(wording.not_found(host))
        if not self.lists(host, port) and not all(map(is_public, found)):
            raise Unreachable(wording.private(host, self.setting))
        return found


def _names(text: str) -> frozenset[str]:
    names = (name.strip().lower() for name in text.split(","))
    return frozenset(name for name in names if name)


def is_public(address: str) -> bool:
    """Whether anybody on the internet could ask it; an address that hides another is as public as that one."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    hidden: list[ipaddress.IPv4Address | None] = []
    if isinstance(found, ipaddress.IPv6Address):
        hidden = [found.ipv4_mapped, found.sixtofour, *(found.teredo or ())]
        if found in _NAT64:
            hidden.append(ipaddress.IPv4Address(int(found) & 0xFFFFFFFF))
        if found.is_site_local:  # out of use, and global to Python
            return False
    is_global = found.is_global and not found.is_multicast and not found.is_reserved
    return (is_global or any(hidden)) and all(is_public(str(each)) for each in hidden if each is not None)


def _is_literal(host: str) -> bool:
    """Whether the host is an address itself, in any way that the system reads one ("127.1", "0x7f000001")."""
    try:
        socket.inet_aton(host)
    except OSError:
        return ":" in host
    return True


def look_up(host: str, port: int) -> list[str]:
    """The system's own lookup."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class Outbound:
    """Sends requests to where `reach` lets it. `look_up` and `connect` are the network."""

    def __init__(
        self,
        reach: Reach,
        look_up: Lookup = look_up,
        connect: httpcore.NetworkBackend | None = None,
        whole_seconds: float = WHOLE_SECONDS,
        body_bytes: int = BODY_BYTES,
    ) -> None:
        self._reach = reach
        self._look_up = look_up
        self._connect = connect or httpcore.SyncBackend()
        self._whole_seconds = whole_seconds
        self._body_bytes = body_bytes
        self._tls = ssl.create_default_context()

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        return self.send("POST", url, body, headers)

    def send(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send it once. Raises Unreachable, when nothing has arrived, and httpcore's errors, when it may have."""
        self._reach.check_url(url)
        backend = _Checked(self._reach, self._look_up, self._connect, time.monotonic() + self._whole_seconds)
        timeout = dict.fromkeys(("read", "write", "pool"), self._whole_seconds) | {"connect": CONNECT_SECONDS}
        try:
            with (
                httpcore.ConnectionPool(ssl_context=self._tls, network_backend=backend) as pool,
                pool.stream(
                    method, url, headers=list(headers.items()), content=body, extensions={"timeout": timeout}
                ) as answer,
            ):
                said, cut = self._beginning(answer)
                return Answer(answer.status, said, cut, _headers(answer))
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            raise Unreachable(wording.not_reached(str(error) or wording.NO_ANSWER)) from error

    def _beginning(self, answer: httpcore.Response) -> tuple[bytes, bool]:
        read = bytearray()
        for chunk in answer.iter_stream():
            read += chunk
            if len(read) > self._body_bytes:
                break
        return bytes(read[: self._body_bytes]), len(read) > self._body_bytes


def _headers(answer: httpcore.Response) -> dict[str, str]:
    """By lower-case names; of a header that came twice the first."""
    return {name.lower().decode("latin-1"): value.decode("latin-1") for name, value in reversed(answer.headers)}


class _Checked(httpcore.NetworkBackend):
    """Connects to the addresses that were looked at, and to no others; what it reads from ends at `give_up_at`."""

    def __init__(self, reach: Reach, look_up: Lookup, connect: httpcore.NetworkBackend, give_up_at: float) -> None:
        self._reach = reach
        self._look_up = look_up
        self._connect = connect
        self._give_up_at = give_up_at

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        failure: Exception | None = None
        for address in self._reach.addresses(host, port, self._look_up):
            try:
                stream = self._connect.connect_tcp(address, port, timeout, local_address, socket_options)
                return _Ending(stream, self._give_up_at)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        assert failure is not None  # there was an address
        raise failure


class _Ending(httpcore.NetworkStream):
    """A stream on which nothing lasts longer than until `give_up_at`, on time.monotonic()."""

    def __init__(self, stream: httpcore.NetworkStream, give_up_at: float) -> None:
        self._stream = stream
        self._give_up_at = give_up_at

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._left(httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._left(httpcore.WriteTimeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = min(CONNECT_SECONDS, self._left(httpcore.ConnectTimeout))
        return _Ending(self._stream.start_tls(ssl_context, server_hostname, left), self._give_up_at)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def _left(self, error: type[Exception]) -> float:
        left = self._give_up_at - time.monotonic()
        if left <= 0:
            raise error(wording.NO_ANSWER)
        return left
