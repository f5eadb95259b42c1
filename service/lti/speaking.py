"""A platform and what is asked of it go in; its answer comes out, or `Away` with how long to wait.

A platform is asked with a token, which it gives for a statement signed with our key; tokens are kept until they are
about to end. Every request has an end in time and size, is sent to the address it is meant for and no further, and
carries no credentials but its own. (docs/decisions/0193, 0230)
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpcore
import requests
import sqlalchemy as sa
from pylti1p3.exception import LtiException, LtiServiceException
from pylti1p3.registration import Registration
from pylti1p3.service_connector import ServiceConnector, TServiceConnectorResponse
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

from service.lti import keys, platforms, wording
from service.lti.keys import Key
from service.lti.platforms import Platform
from service.outbound import Outbound, Reach, Unreachable

WHOLE_SECONDS = 30.0  # of a request
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


class Session(requests.Session):
    """Requests that end: in time, in size, and at the address they were sent to, which must be within `reach`."""

    def __init__(self, reach: Reach) -> None:
        super().__init__()
        self.headers.update({"User-Agent": "tinyllm-autograder", "Accept-Encoding": "identity"})
        self.trust_env = False  # or a .netrc would replace our tokens
        for scheme in ("https://", "http://"):
            self.mount(scheme, _Guarded(reach))

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        response = super().send(request, **options | {"allow_redirects": False})
        if 300 <= response.status_code < 400:
            raise requests.exceptions.TooManyRedirects(wording.redirected(request.url or ""))
        return response


class _Guarded(BaseAdapter):
    """Sends what the library prepared through service/outbound.py."""

    def __init__(self, reach: Reach) -> None:
        super().__init__()
        self._outbound = Outbound(reach, whole_seconds=WHOLE_SECONDS, body_bytes=BODY_BYTES)

    def send(self, request: requests.PreparedRequest, *options: Any, **more: Any) -> requests.Response:
        url, body = request.url or "", request.body or b""
        sent = body.encode() if isinstance(body, str) else body
        assert isinstance(sent, bytes)  # the library sends no streams
        headers = {name: value if isinstance(value, str) else value.decode() for name, value in request.headers.items()}
        try:
            answer = self._outbound.send(request.method or "GET", url, sent, headers)
        except Unreachable as error:
            raise requests.exceptions.ConnectionError(str(error)) from error
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            raise requests.exceptions.ConnectionError(f"{type(error).__name__} {error}".strip()) from error
        if answer.cut:
            raise requests.exceptions.ContentDecodingError(wording.ANSWER_TOO_LONG)
        response = requests.Response()
        response.status_code, response.url, response.request = answer.status, url, request
        response.headers = CaseInsensitiveDict(answer.headers)
        response.encoding = "utf-8"  # as JSON is: some of the encodings it could name take hours to read
        response._content = answer.body  # what reading it whole would have set
        return response

    def close(self) -> None:
        pass


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
            case requests.exceptions.RequestException() | LtiException():
                raise Away(wording.not_reached(error)) from error
            case LookupError() | TypeError() | ValueError() | AttributeError() | ArithmeticError() | RecursionError():
                raise Away(wording.not_reached(error)) from error  # what it said is not what was expected


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
