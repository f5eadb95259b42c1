"""A platform and what is asked of it go in; its answer comes out, or `Away` with how long to wait.

A platform is asked with a token, which it gives for a statement signed with our key; tokens are kept until they are
about to end. Every request has an end in time and size, is sent to the address it is meant for and no further, and
carries no credentials but its own. (docs/decisions/0193)
"""

import ipaddress
import json
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import requests
import sqlalchemy as sa
from pylti1p3.exception import LtiException, LtiServiceException
from pylti1p3.registration import Registration
from pylti1p3.service_connector import ServiceConnector, TServiceConnectorResponse

from service.lti import keys, platforms, wording
from service.lti.keys import Key
from service.lti.platforms import Platform

CONNECT_SECONDS, READ_SECONDS, WHOLE_SECONDS = 5.0, 15.0, 30.0
BODY_BYTES = 8 * 2**20  # of an answer: the members of a large course
TOKEN_SPARE_SECONDS = 60.0


class Away(Exception):
    """The platform did not do what it was asked. `status` None: it did not answer at all; `for_good`: asking again
    will not help."""

    def __init__(
        self, message: str, status: int | None = None, retry_after: str = "", *, for_good: bool = False
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        self.for_good = for_good


def refuse_link_local(url: str) -> None:
    """Raises InvalidURL for a host whose address is link-local: there is no platform, but a cloud's own secrets are.

    Other private addresses are let through, because a campus keeps its platform there.
    """
    host = urlsplit(url).hostname or ""
    try:
        found = {str(info[4][0]).partition("%")[0] for info in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return  # asking will say so
    addresses = [ipaddress.ip_address(each) for each in found]
    plain = [(each.ipv4_mapped or each) if isinstance(each, ipaddress.IPv6Address) else each for each in addresses]
    if any(each.is_link_local for each in plain):
        raise requests.exceptions.InvalidURL(wording.LINK_LOCAL)


class Session(requests.Session):
    """Requests that end: in time, in size, and at the address they were sent to."""

    def __init__(self) -> None:
        super().__init__()
        self.headers["User-Agent"] = "tinyllm-autograder"
        self.auth = _as_it_is  # or a .netrc would replace our tokens

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        options |= {"timeout": (CONNECT_SECONDS, READ_SECONDS), "allow_redirects": False, "stream": True}
        refuse_link_local(str(request.url))
        give_up_at = time.monotonic() + WHOLE_SECONDS
        response = super().send(request, **options)
        body = bytearray()
        for chunk in response.iter_content(64 * 1024):
            body += chunk
            if len(body) > BODY_BYTES or time.monotonic() > give_up_at:
                response.close()
                raise requests.exceptions.ContentDecodingError(wording.ANSWER_TOO_LONG)
        response._content = bytes(body)  # what reading it whole would have set
        if response.is_redirect or 300 <= response.status_code < 400:
            raise requests.exceptions.TooManyRedirects(wording.redirected(request.url or ""))
        return response


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


@dataclass
class Tokens:
    """Access tokens of platforms that are still good, by platform, key and scopes: (token, until when)."""

    held: dict[str, tuple[str, float]] = field(default_factory=dict)


class Speaker(ServiceConnector):
    """The library's connector, with tokens that are kept and addresses that are looked at."""

    def __init__(self, platform: Platform, key: Key, session: requests.Session, tokens: Tokens) -> None:
        super().__init__(registration(platform, key), session)
        self.platform = platform
        self.session = session
        self._name = f"{platform.id}/{key.id}/{platform.auth_token_url}"
        self._tokens = tokens

    def _scope_key(self, scopes: Sequence[str]) -> str:  # type: ignore[override]  # it is called with a list
        return f"{self._name}/{' '.join(sorted(scopes))}"

    def _get_cached_access_token(self, scope_key: str) -> str | None:
        token, until = self._tokens.held.get(scope_key, ("", 0.0))
        return token if until > time.monotonic() else None

    def _cache_access_token(self, scope_key: str, access_token: str, expires_in: float) -> None:
        until = time.monotonic() + float(expires_in) - TOKEN_SPARE_SECONDS
        self._tokens.held[scope_key] = (access_token, until)

    def forget_tokens(self) -> None:
        """Ask for new tokens: those we hold are refused."""
        for name in [name for name in self._tokens.held if name.startswith(f"{self._name}/")]:
            del self._tokens.held[name]

    def make_service_request(self, scopes: Sequence[str], url: str, **options: Any) -> TServiceConnectorResponse:
        checked(url)
        return super().make_service_request(scopes, url, **options)

    def ask(
        self, method: str, url: str, scopes: Sequence[str], *, body: str | None = None, headers: Mapping[str, str]
    ) -> requests.Response:
        """Send one request with a token for the scopes. Raises Away; a token that is refused is replaced once."""
        checked(url)
        for last in (False, True):
            with speaking():
                token = self.get_access_token(scopes)
                sent = {"Authorization": f"Bearer {token}", **headers}
                response = self.session.request(method, url, data=body, headers=sent)
            if response.status_code != 401 or last:
                break
            self.forget_tokens()
        return response


def checked(url: str) -> str:
    """The address, which the platform gave us, if we may send its token there. Raises Away."""
    if not platforms.is_safe(url):
        raise Away(wording.address_refused("its service", url), for_good=True)
    return url


class speaking:  # used as `with speaking():`
    """Turns what goes wrong while a platform is asked into Away."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        match error:
            case LtiServiceException():
                answer = error.response
                retry_after = answer.headers.get("Retry-After", "")
                raise Away(wording.refused_us(answer.status_code, answer.text), answer.status_code, retry_after)
            case requests.exceptions.RequestException() | LtiException() | KeyError() | TypeError() | ValueError():
                raise Away(wording.not_reached(error)) from error


def registration(platform: Platform, key: Key) -> Registration:
    """The platform and our key, as the library wants to know them."""
    made = (
        Registration()
        .set_issuer(platform.issuer)
        .set_client_id(platform.client_id)
        .set_auth_login_url(platform.auth_login_url)
        .set_auth_token_url(platform.auth_token_url)
        .set_key_set_url(platform.key_set_url)
        .set_tool_private_key(key.private_pem)
        .set_tool_public_key(key.public_pem)
    )
    return made.set_auth_audience(platform.audience) if platform.audience else made


def fetch_json(session: requests.Session, url: str) -> Any:
    """What stands at an address that anybody may read. Raises Away."""
    with speaking():
        response = session.get(checked(url), headers={"Accept": "application/json"})
        response.raise_for_status()
        return json.loads(response.content)


def speaker(
    connection: sa.Connection, platform_id: str, now: float, session: requests.Session, tokens: Tokens
) -> Speaker | None:
    """Who speaks to the platform; None if it is unknown or retired. `connection` must be one that writes."""
    platform = platforms.find(connection, platform_id)
    if platform is None or platform.retired_at is not None:
        return None
    return Speaker(platform, keys.signing(connection, now), session, tokens)
