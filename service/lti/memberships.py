"""A platform's list of the people of one of its courses (Names and Role Provisioning Services 2.0) goes in; the people
come out as records, to be made members.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pylti1p3.names_roles import NamesRolesProvisioningService

from service.accounts import Role
from service.lti import messages, roles, wording
from service.lti.speaking import Away, Speaker, speaking

SCOPE = "https://purl.imsglobal.org/spec/lti-nrps/scope/contextmembership.readonly"
MOST_PAGES = 100
MOST_MEMBERS = 20_000


@dataclass(frozen=True)
class Listed:
    """One person of the list. `role` None: no part here; not `active`: left, or was put out."""

    subject: str
    role: Role | None
    active: bool
    name: str = ""
    email: str = ""
    sourced_id: str = ""


def fetch(platform: Speaker, memberships_url: str) -> list[Listed]:
    """Everyone the platform lists, in its order. Raises Away, and leaves out whom it lists without an id.

    All pages must be at one place: the token is for that one.
    """
    service = NamesRolesProvisioningService(platform, {"context_memberships_url": memberships_url})
    found: list[Listed] = []
    url: str | None = memberships_url
    for _ in range(MOST_PAGES):
        if url is None:
            return found
        if urlsplit(url)[:2] != urlsplit(memberships_url)[:2]:
            raise Away(wording.list_elsewhere(url), for_good=True)
        with speaking():
            page, url = service.get_members_page(url)
        if not isinstance(page, list):
            raise Away(wording.LIST_UNREADABLE, for_good=True)
        found += [each for member in page if (each := listed(member)) is not None]
        if len(found) > MOST_MEMBERS:
            break
    raise Away(wording.LIST_TOO_LONG, for_good=True)


def listed(member: object) -> Listed | None:
    """One entry of the list, None if it is none. A status that is left out is Active."""
    if not isinstance(member, Mapping):
        return None
    said: Mapping[str, Any] = member
    try:
        subject = messages.identifier(said.get("user_id"), "user_id")
    except ValueError:
        return None
    has = said.get("roles")
    return Listed(
        subject=subject,
        role=roles.ours(has if isinstance(has, list) else ()),
        active=said.get("status", "Active") == "Active",
        name=messages.name_of(said),
        email=messages.text(said.get("email")),
        sourced_id=messages.text(said.get("lis_person_sourcedid")),
    )
