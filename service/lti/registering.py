"""A platform that introduces itself goes in (LTI Dynamic Registration 1.0): it is asked who it is and told who we are;
a registered platform comes out.

Only with an invitation of an administrator, which works once: the addresses are whoever's brings it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests

from service.lti import ags, memberships, messages, platforms, wording
from service.lti.placements import UNIT
from service.lti.platforms import Platform
from service.lti.speaking import Away, checked, fetch_json, speaking

PLATFORM = "https://purl.imsglobal.org/spec/lti-platform-configuration"
TOOL = "https://purl.imsglobal.org/spec/lti-tool-configuration"
SCOPES = (ags.SCORE, ags.LINE_ITEM, memberships.SCOPE)
NAME = "Autograder"


@dataclass(frozen=True)
class Registered:
    """The platform as it is to be stored. `deployment` is the one it made for us, '' if it says none."""

    platform: Platform
    deployment: str


def register(session: requests.Session, configuration_url: str, token: str, base_url: str) -> Registered:
    """Ask the platform who it is, and tell it who we are. Raises Away."""
    said = fetch_json(session, configuration_url)
    if not isinstance(said, Mapping) or urlsplit(_text(said, "issuer")).netloc != urlsplit(configuration_url).netloc:
        raise Away(wording.NOT_A_PLATFORM, for_good=True)
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    with speaking():
        answer = session.post(
            checked(_text(said, "registration_endpoint")), data=json.dumps(introduction(base_url)), headers=headers
        )
        if not answer.ok:
            raise Away(wording.refused_us(answer.status_code, answer.text), answer.status_code, for_good=True)
        made = json.loads(answer.content)
    if not isinstance(made, Mapping):
        raise Away(wording.NOT_A_PLATFORM, for_good=True)
    return registered(said, made)


def introduction(base_url: str) -> dict[str, Any]:
    """Who we are: our addresses, our keys, what we can do and what we would like to know."""
    launch = f"{base_url}/lti/launch"
    return {
        "application_type": "web",
        "response_types": ["id_token"],
        "grant_types": ["implicit", "client_credentials"],
        "initiate_login_uri": f"{base_url}/lti/login",
        "redirect_uris": [launch],
        "client_name": NAME,
        "jwks_uri": f"{base_url}/lti/jwks",
        "token_endpoint_auth_method": "private_key_jwt",
        "scope": " ".join(SCOPES),
        TOOL: {
            "domain": urlsplit(base_url).netloc,
            "target_link_uri": launch,
            "claims": ["iss", "sub", "name", "given_name", "family_name", "email"],
            "messages": [
                {"type": messages.Kind.RESOURCE.value, "target_link_uri": launch, "label": NAME},
                {
                    "type": messages.Kind.DEEP_LINKING.value,
                    "target_link_uri": launch,
                    "label": f"{NAME}: choose a {UNIT}",
                },
            ],
        },
    }


def registered(said: Mapping[str, Any], made: Mapping[str, Any]) -> Registered:
    """The platform that its configuration and its answer to our introduction describe. Raises Away."""
    configuration, tool = said.get(PLATFORM), made.get(TOOL)
    family = _text(configuration, "product_family_code") if isinstance(configuration, Mapping) else ""
    issuer = _text(said, "issuer")
    try:
        platform = Platform(
            id="",
            name=f"{family or 'Platform'} at {urlsplit(issuer).netloc}",
            issuer=issuer,
            client_id=_text(made, "client_id"),
            auth_login_url=_text(said, "authorization_endpoint"),
            auth_token_url=_text(said, "token_endpoint"),
            key_set_url=_text(said, "jwks_uri"),
            audience=_text(said, "authorization_server"),
            frame_origin=platforms.origin(issuer),
        )
    except ValueError as error:
        raise Away(str(error), for_good=True) from error
    return Registered(platform, _text(tool, "deployment_id") if isinstance(tool, Mapping) else "")


def _text(said: Mapping[str, Any], name: str) -> str:
    return messages.text(said.get(name), 2000)
