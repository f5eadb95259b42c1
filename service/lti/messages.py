"""What a browser brings from a platform goes in; the launch it stands for comes out, after every check: the state and
the browser it belongs to, the nonce, the platform's signature, its times, audience and deployment, and its form.

The library makes the checks (docs/decisions/0190); here it meets our tables, and what it leaves open is closed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import jwt
import requests
import sqlalchemy as sa
from pylti1p3.cookie import CookieService
from pylti1p3.deployment import Deployment
from pylti1p3.exception import LtiException
from pylti1p3.message_launch import MessageLaunch
from pylti1p3.registration import Registration, TKeySet
from pylti1p3.request import Request
from pylti1p3.session import SessionService
from pylti1p3.tool_config.abstract import ToolConfAbstract

from service.accounts import Role
from service.database import writing
from service.lti import logins, platforms, roles, speaking, wording
from service.lti.platforms import Platform

CLAIM = "https://purl.imsglobal.org/spec/lti/claim/"
DEEP_LINKING = "https://purl.imsglobal.org/spec/lti-dl/claim/deep_linking_settings"
LINE_ITEMS = "https://purl.imsglobal.org/spec/lti-ags/claim/endpoint"
MEMBERSHIPS = "https://purl.imsglobal.org/spec/lti-nrps/claim/namesroleservice"

LEEWAY_SECONDS = 60  # that a platform's clock may differ from ours
LIFE_SECONDS = 3600  # of a message, whatever it says of itself
KEY_SET_SECONDS = 3600.0  # a platform's keys are taken to be the same for so long
KEY_SET_MOST_SECONDS = 24 * 3600.0  # while it does not show them
KEY_SET_PAUSE_SECONDS = 30.0  # between two looks for a key that was not there
TOKEN_CHARS = 64 * 1024
ID_CHARS = 255
TEXT_CHARS = 500


class Kind(StrEnum):
    """What a platform asks for."""

    RESOURCE = "LtiResourceLinkRequest"
    DEEP_LINKING = "LtiDeepLinkingRequest"


class Refused(Exception):
    """The launch is none. `reason` is for the log, the message for the person."""

    def __init__(self, message: str, reason: str = "", status: int = 401) -> None:
        super().__init__(message)
        self.reason = reason or message
        self.status = status


@dataclass(frozen=True)
class Launch:
    """One person who comes from one place of a platform. Texts that it left out are empty.

    `subject` and `context` are the platform's ids, `role` ours; `deep_linking` what it wants to know when a teacher is
    to pick units.
    """

    platform: Platform
    deployment: str
    kind: Kind
    subject: str
    role: Role | None
    target: str
    name: str = ""
    email: str = ""
    sourced_id: str = ""
    context: str = ""
    context_title: str = ""
    resource_link: str = ""
    resource_title: str = ""
    custom: Mapping[str, str] = field(default_factory=dict)
    framed: bool = False
    memberships_url: str = ""
    line_items_url: str = ""
    line_item_url: str = ""
    deep_linking: Mapping[str, Any] = field(default_factory=dict)


def verified(
    engine: sa.Engine, session: requests.Session, *, state: str, browser: str, id_token: str, now: float
) -> Launch:
    """The launch, whose login is then used up. Raises Refused, and speaking.Away if the platform shows no keys.

    No transaction is open while the platform is asked for its keys.
    """
    if len(id_token) > TOKEN_CHARS:
        raise Refused(wording.MESSAGE_REFUSED, "the message is too long")
    with writing(engine) as connection:
        login = logins.use(connection, state=state, browser=browser, now=now)
        platform = platforms.find(connection, login.platform) if login is not None else None
        let_in = platforms.let_in(connection, platform.id) if platform is not None else frozenset()
    if login is None:
        raise Refused(wording.LOGIN_LOST, "no login of this browser has this state")
    if platform is None or platform.retired_at is not None:
        raise Refused(wording.LOGIN_UNKNOWN)
    found = _Message(session, platform, let_in, login, state=state, id_token=id_token, now=now)
    try:
        return launch_of(platform, found.validate().get_launch_data())
    except (LtiException, jwt.PyJWTError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        if found.refused_deployment:
            with writing(engine) as connection:
                platforms.knocked(connection, platform.id, found.refused_deployment, now)
            raise Refused(wording.deployment_waiting(found.refused_deployment), status=403) from error
        raise Refused(wording.MESSAGE_REFUSED, f"{type(error).__name__}: {error}") from error
    finally:
        if found.fetched is not None:
            with writing(engine) as connection:
                platforms.keep_key_set(connection, platform.id, found.fetched, now)


class _Parameters(Request):
    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._parameters = parameters

    def is_secure(self) -> bool:
        return True

    def get_param(self, key: str) -> str:
        return self._parameters.get(key, "")


class _OneLogin(SessionService):
    """The state was found with its browser, and used up, before the library is asked; the nonce has to be its own."""

    def __init__(self, login: logins.Login) -> None:
        self._login = login

    def check_state_is_valid(self, state: str, id_token_hash: str) -> bool:
        return True

    def check_nonce(self, nonce: str) -> bool:
        return isinstance(nonce, str) and logins.digest_of(nonce) == self._login.nonce

    def save_launch_data(self, key: str, jwt_body: Mapping[str, Any]) -> None:
        return None

    def set_state_valid(self, state: str, id_token_hash: str) -> None:
        return None


class _NoCookies(CookieService):
    def get_cookie(self, name: str) -> str | None:
        return None

    def set_cookie(self, name: str, value: str | int, exp: int | None = 3600) -> None:
        return None


class _OnePlatform(ToolConfAbstract[_Parameters]):
    """The platform whose login it is, and no other."""

    def __init__(self, platform: Platform, let_in: frozenset[str]) -> None:
        self._platform = platform
        self._let_in = let_in
        self.refused_deployment = ""

    def check_iss_has_one_client(self, iss: str) -> bool:
        return False

    def find_registration_by_issuer(self, iss: str, *args: object, **more: object) -> Registration:
        raise LtiException("a platform is found by its issuer and client id")

    def find_registration_by_params(self, iss: str, client_id: str, *args: object, **more: object) -> Registration:
        if iss != self._platform.issuer or client_id != self._platform.client_id:
            raise LtiException("the message is of another platform than the login")
        return (
            Registration()
            .set_issuer(self._platform.issuer)
            .set_client_id(self._platform.client_id)
            .set_key_set_url(self._platform.key_set_url)
        )

    def find_deployment(self, iss: str, deployment_id: str) -> Deployment | None:
        return None

    def find_deployment_by_params(
        self, iss: str, deployment_id: str, client_id: str, *args: object, **more: object
    ) -> Deployment | None:
        name = text(deployment_id, ID_CHARS)
        if name in self._let_in:
            return Deployment().set_deployment_id(name)
        self.refused_deployment = name
        return None


class _Message(MessageLaunch[_Parameters, _OnePlatform, _OneLogin, _NoCookies]):
    def __init__(
        self,
        session: requests.Session,
        platform: Platform,
        let_in: frozenset[str],
        login: logins.Login,
        *,
        state: str,
        id_token: str,
        now: float,
    ) -> None:
        super().__init__(
            _Parameters({"state": state, "id_token": id_token}),
            _OnePlatform(platform, let_in),
            session_service=_OneLogin(login),
            cookie_service=_NoCookies(),
            requests_session=session,
        )
        self._platform = platform
        self._now = now
        self.fetched: Mapping[str, Any] | None = None
        # The times are held against our own clock below. The audience is the client id, which is looked up above.
        only_signature = {"verify_aud": False, "verify_exp": False, "verify_iat": False, "verify_nbf": False}
        self.set_jwt_verify_options({**only_signature, "require": ["exp", "iat", "nonce", "iss", "aud", "sub"]})  # type: ignore[typeddict-item]

    @property
    def refused_deployment(self) -> str:
        """The deployment for which alone the message was refused."""
        return self._tool_config.refused_deployment

    def _get_request_param(self, key: str) -> str:
        return self._request.get_param(key)

    def validate_jwt_signature(self) -> "MessageLaunch[_Parameters, _OnePlatform, _OneLogin, _NoCookies]":
        if self._jwt["header"].get("alg") != "RS256":
            raise LtiException("signed with another algorithm than RS256")
        super().validate_jwt_signature()
        self._check_times_and_audience(self._jwt["body"])
        return self

    def _check_times_and_audience(self, claims: Mapping[str, Any]) -> None:
        issued, expires, not_before = (claims.get(name) for name in ("iat", "exp", "nbf"))
        for moment in (issued, expires, not_before if not_before is not None else issued):
            if isinstance(moment, bool) or not isinstance(moment, int | float):
                raise LtiException("a time is no number")
        assert isinstance(issued, int | float) and isinstance(expires, int | float)
        if expires < self._now - LEEWAY_SECONDS or issued < self._now - LIFE_SECONDS - LEEWAY_SECONDS:
            raise LtiException("the message is too old")
        if max(issued, not_before or issued) > self._now + LEEWAY_SECONDS:
            raise LtiException("the message is of the future")
        audience = claims.get("aud")
        several = isinstance(audience, list) and len(audience) > 1
        if claims.get("azp", None if several else self._platform.client_id) != self._platform.client_id:
            raise LtiException("the message is for somebody else")

    def fetch_public_key(self, key_set_url: str) -> TKeySet:
        """The platform's keys: those we remember, unless the one that signed is not among them."""
        known, at = self._platform.key_set, self._platform.key_set_at
        age = self._now - at if at is not None else float("inf")
        there = known is not None and self._jwt["header"].get("kid") in _kids(known)
        if known is None or age > KEY_SET_SECONDS or (not there and age > KEY_SET_PAUSE_SECONDS):
            try:
                known = self.fetched = self._fetched(key_set_url)
            except speaking.Away:
                if known is None or not there or age > KEY_SET_MOST_SECONDS:
                    raise
        return known  # type: ignore[return-value]  # its form was looked at

    def _fetched(self, key_set_url: str) -> Mapping[str, Any]:
        fetched = speaking.fetch_json(self._requests_session, key_set_url)
        if not _kids(fetched):
            raise speaking.Away(wording.KEYS_AWAY)
        return dict(fetched)


def _kids(key_set: object) -> set[str]:
    keys = key_set.get("keys") if isinstance(key_set, Mapping) else None
    if not isinstance(keys, list) or not all(isinstance(key, Mapping) for key in keys):
        return set()
    return {key["kid"] for key in keys if isinstance(key.get("kid"), str)}


def launch_of(platform: Platform, claims: Mapping[str, Any]) -> Launch:
    """What a message says that is known to be the platform's. Raises ValueError for one that says it wrongly."""
    context, link, lis, shown, ags, members, dl = (
        _object(claims, name)
        for name in (
            *(CLAIM + "context", CLAIM + "resource_link", CLAIM + "lis", CLAIM + "launch_presentation"),
            *(LINE_ITEMS, MEMBERSHIPS, DEEP_LINKING),
        )
    )
    said = claims.get(CLAIM + "roles")
    custom = _object(claims, CLAIM + "custom")
    return Launch(
        platform=platform,
        deployment=identifier(claims.get(CLAIM + "deployment_id"), "deployment_id"),
        kind=Kind(claims[CLAIM + "message_type"]),
        subject=identifier(claims.get("sub"), "sub"),
        role=roles.ours(said if isinstance(said, list) else ()),
        target=text(claims.get(CLAIM + "target_link_uri"), 2000),
        name=name_of(claims),
        email=text(claims.get("email")),
        sourced_id=text(lis.get("person_sourcedid")),
        context=identifier(context["id"], "context") if "id" in context else "",
        context_title=text(context.get("title")) or text(context.get("label")),
        resource_link=identifier(link["id"], "resource_link") if "id" in link else "",
        resource_title=text(link.get("title")),
        custom={text(name): text(value) for name, value in custom.items() if isinstance(value, str)},
        framed=shown.get("document_target") in ("iframe", "frame"),
        memberships_url=_url(members.get("context_memberships_url")),
        line_items_url=_url(ags.get("lineitems")),
        line_item_url=_url(ags.get("lineitem")),
        deep_linking=dl,
    )


def _object(claims: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = claims.get(name)
    return value if isinstance(value, Mapping) else {}


def identifier(value: object, name: str) -> str:
    """An id is kept as it is: two that were shortened could be one."""
    if not isinstance(value, str) or not 0 < len(value) <= ID_CHARS or not is_storable(value):
        raise ValueError(f"{name} is no id: {json.dumps(value)[:80]}")
    return value


def text(value: object, most: int = TEXT_CHARS) -> str:
    return value[:most].strip() if isinstance(value, str) and is_storable(value) else ""


def _url(value: object) -> str:
    return value if isinstance(value, str) and len(value) <= 2000 and platforms.is_safe(value) else ""


def name_of(claims: Mapping[str, Any]) -> str:
    parts = (text(claims.get(part)) for part in ("given_name", "family_name"))
    return text(claims.get("name")) or " ".join(part for part in parts if part)


def is_storable(value: str) -> bool:
    """Whether both databases can hold the text."""
    return "\0" not in value and not any("\ud800" <= c <= "\udfff" for c in value)
