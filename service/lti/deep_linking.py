"""The units a teacher picked go in; the signed answer that the platform waits for comes out, and where it goes.

Each unit becomes an activity with a grade column of its own, and the platform hands its name back at every launch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from pylti1p3.deep_link import DeepLink
from pylti1p3.deep_link_resource import DeepLinkResource
from pylti1p3.lineitem import LineItem

from service.lti import platforms
from service.lti.keys import Key
from service.lti.placements import UNIT
from service.lti.platforms import Platform
from service.lti.speaking import registration


@dataclass(frozen=True)
class Picked:
    """A unit to be offered, and the most points its grade can have."""

    unit: str
    title: str
    points: float


@dataclass(frozen=True)
class Answer:
    """`token` is to be posted to `url` as JWT, by the teacher's browser."""

    url: str
    token: str


def takes_several(settings: Mapping[str, Any]) -> bool:
    return settings.get("accept_multiple") in (True, "true")


def makes_columns(settings: Mapping[str, Any]) -> bool:
    """Whether a link may bring a grade column with it; a platform that does not say lets it."""
    return settings.get("accept_lineitem") not in (False, "false")


def returns_to(settings: Mapping[str, Any]) -> str:
    """Where the platform waits; empty if it says no address that an answer may go to."""
    url = settings.get("deep_link_return_url")
    return url if isinstance(url, str) and platforms.is_safe(url) else ""


def answer(
    platform: Platform,
    key: Key,
    deployment: str,
    settings: Mapping[str, Any],
    picked: Sequence[Picked],
    launch_url: str,
) -> Answer:
    """The answer to a platform that asked for units. None picked: the teacher changed their mind."""
    link = DeepLink(registration(platform, key), deployment, settings)  # type: ignore[arg-type]  # as the platform sent it
    message = link.get_message_jwt([_resource(each, settings, launch_url) for each in picked])
    if settings.get("data") is None:  # to be left out unless it was sent
        del message["https://purl.imsglobal.org/spec/lti-dl/claim/data"]
    return Answer(returns_to(settings), str(link.encode_jwt(message)))  # type: ignore[no-untyped-call]


def _resource(picked: Picked, settings: Mapping[str, Any], launch_url: str) -> DeepLinkResource:
    made = (
        DeepLinkResource()
        .set_title(f"{picked.unit}: {picked.title}")
        .set_url(f"{launch_url}?{urlencode({UNIT: picked.unit})}")
        .set_custom_params({UNIT: picked.unit})
    )
    if makes_columns(settings):
        column = LineItem().set_label(f"{picked.unit}: {picked.title}").set_score_maximum(picked.points)
        made.set_lineitem(column.set_resource_id(picked.unit).set_tag("score"))
    return made
