"""What administrators decide of learning platforms, and teachers of their course's part in them, as JSON.

Every change is in the audit log.
"""

from typing import Annotated

import sqlalchemy as sa
from fastapi import APIRouter, Path, Request, Response

from service import offerings
from service.answers import moment
from service.audit import By
from service.database import reading, writing
from service.dependencies import Administrator, ClassEditor, ClassReader, CourseId, RequestId, Served, Service
from service.lti import answers, invitations, keys, placements, platforms, syncing, wording
from service.lti.answers import (
    CodeAnswer,
    ContextList,
    DeploymentBody,
    InvitationAnswer,
    KeyList,
    PlatformAnswer,
    PlatformBody,
    PlatformList,
    RotateBody,
    SyncedAnswer,
)
from service.lti.placements import Context, Link
from service.lti.platforms import Platform
from service.lti.routes import REGISTER, base_url
from service.lti.speaking import Away
from service.outbound import Reach
from service.problems import Problem, documented

router = APIRouter(tags=["learning platforms"])

PlatformId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]
ContextId = PlatformId
LinkId = PlatformId

PLATFORM = "/v1/lti/platforms/{platform}"
OF_COURSE = "/v1/courses/{course}/lti"


@router.get("/v1/lti/platforms", summary="The platforms that are registered", responses=documented(401, 403))
def list_platforms(account: Administrator, service: Served) -> PlatformList:
    with reading(service.engine) as connection:
        found = platforms.all_platforms(connection)
        return PlatformList(platforms=tuple(answers.shown_platform(connection, each) for each in found))


@router.post(
    "/v1/lti/platforms", status_code=201, summary="Register a platform", responses=documented(401, 403, 409, 422)
)
def register(account: Administrator, body: PlatformBody, service: Served, request_id: RequestId) -> PlatformAnswer:
    with writing(service.engine) as connection:
        by = By(account, service.clock(), request_id)
        found = platforms.register(connection, platform_of(body, ""), by)
        if found is None:
            raise Problem(409, "lti_platform_known", wording.PLATFORM_KNOWN)
        return answers.shown_platform(connection, found)


@router.get(PLATFORM, summary="One platform and its deployments", responses=documented(401, 403, 404, 422))
def one(account: Administrator, platform: PlatformId, service: Served) -> PlatformAnswer:
    with reading(service.engine) as connection:
        return answers.shown_platform(connection, known(connection, platform))


@router.put(PLATFORM, summary="Change a platform, or retire it", responses=documented(401, 403, 404, 409, 422))
def change(
    account: Administrator, platform: PlatformId, body: PlatformBody, service: Served, request_id: RequestId
) -> PlatformAnswer:
    with writing(service.engine) as connection:
        by = By(account, service.clock(), request_id)
        before = known(connection, platform)
        found = platforms.change(connection, platform_of(body, platform), by)
        if found is None:
            raise Problem(409, "lti_platform_known", wording.PLATFORM_KNOWN)
        if body.retired != (before.retired_at is not None):
            platforms.retire(connection, platform, by, back=not body.retired)
        return answers.shown_platform(connection, known(connection, platform))


@router.post(
    PLATFORM + "/deployments",
    summary="Let a deployment of a platform in, or out again",
    responses=documented(401, 403, 404, 422),
)
def allow(
    account: Administrator, platform: PlatformId, body: DeploymentBody, service: Served, request_id: RequestId
) -> PlatformAnswer:
    with writing(service.engine) as connection:
        by = By(account, service.clock(), request_id)
        found = known(connection, platform)
        platforms.allow(connection, platform, body.deployment, by, allowed=body.allowed)
        return answers.shown_platform(connection, found)


@router.get("/v1/lti/keys", summary="The keys we sign with", responses=documented(401, 403))
def list_keys(account: Administrator, service: Served) -> KeyList:
    with reading(service.engine) as connection:
        return answers.shown_keys(keys.published(connection, service.clock()))


@router.post("/v1/lti/keys", status_code=201, summary="Make the next key", responses=documented(401, 403, 422))
def rotate(account: Administrator, body: RotateBody, service: Served, request_id: RequestId) -> KeyList:
    with writing(service.engine) as connection:
        now = service.clock()
        keys.rotate(connection, By(account, now, request_id), at_once=body.at_once)
        return answers.shown_keys(keys.published(connection, now))


@router.post(
    "/v1/lti/invitations",
    status_code=201,
    summary="Invite a platform to register itself",
    responses=documented(401, 403),
)
def invite(request: Request, account: Administrator, service: Served) -> InvitationAnswer:
    now = service.clock()
    with writing(service.engine) as connection:
        code = invitations.invite(connection, account.id, None, now)
    url = f"{base_url(request)}{REGISTER}?invitation={code}"
    return InvitationAnswer(url=url, expires_at=moment(now + invitations.LIFE_SECONDS))


@router.get(
    OF_COURSE, summary="The platforms' courses that stand for this one", responses=documented(401, 403, 404, 422)
)
def contexts(account: ClassReader, course: CourseId, service: Served) -> ContextList:
    with reading(service.engine) as connection:
        return answers.shown_contexts(connection, course)


@router.post(
    OF_COURSE + "/codes",
    status_code=201,
    summary="A code with which a teacher on a platform connects their course to this one",
    responses=documented(401, 403, 404, 422),
)
def code(account: ClassEditor, course: CourseId, service: Served) -> CodeAnswer:
    now = service.clock()
    with writing(service.engine) as connection:
        made = new_code(connection, account.id, course, now)
    return CodeAnswer(code=made, expires_at=moment(now + invitations.LIFE_SECONDS))


@router.post(
    OF_COURSE + "/contexts/{context}/members",
    summary="Read the platform's list of members, and make it so",
    responses=documented(401, 403, 404, 422, 502),
)
def members(
    account: ClassEditor, course: CourseId, context: ContextId, service: Served, request_id: RequestId
) -> SyncedAnswer:
    with reading(service.engine) as connection:
        found = connected(connection, course, context)
    try:
        done = syncing.sync(
            service.engine, Reach.of_platforms(service.settings), found, By(account, service.clock(), request_id)
        )
    except Away as error:
        raise Problem(502, "lti_platform_away", str(error)) from error
    return SyncedAnswer(listed=done.listed, changed=done.changed, left=done.left)


@router.post(
    OF_COURSE + "/contexts/{context}/links/{link}/column",
    summary="Have the platform make a grade column for an activity that has none",
    responses=documented(401, 403, 404, 422, 502),
)
def column(
    account: ClassEditor, course: CourseId, context: ContextId, link: LinkId, service: Served, request_id: RequestId
) -> ContextList:
    with reading(service.engine) as connection:
        found = connected(connection, course, context)
        wanted = link_of(connection, found, link)
    try:
        add_column(service, found, wanted, By(account, service.clock(), request_id))
    except Away as error:
        raise Problem(502, "lti_platform_away", str(error)) from error
    with reading(service.engine) as connection:
        return answers.shown_contexts(connection, course)


@router.delete(
    OF_COURSE + "/contexts/{context}",
    status_code=204,
    summary="Let a platform's course stand for this one no more",
    responses=documented(401, 403, 404, 422),
)
def disconnect(
    account: ClassEditor, course: CourseId, context: ContextId, service: Served, request_id: RequestId
) -> Response:
    with writing(service.engine) as connection:
        found = connected(connection, course, context)
        placements.disconnect(connection, found, By(account, service.clock(), request_id))
    return Response(status_code=204)


def platform_of(body: PlatformBody, platform_id: str) -> Platform:
    """The platform that was sent; raises Problem 422 for an address that cannot be."""
    said = body.model_dump(exclude={"retired"})
    try:
        return Platform(id=platform_id, **{name: value.strip() for name, value in said.items()})
    except ValueError as error:
        raise Problem(422, "lti_platform_invalid", str(error)) from error


def known(connection: sa.Connection, platform_id: str) -> Platform:
    found = platforms.find(connection, platform_id)
    if found is None:
        raise Problem(404, "lti_platform_unknown", wording.PLATFORM_UNKNOWN)
    return found


def connected(connection: sa.Connection, course: str, context_id: str) -> Context:
    """The context, if it stands for this course; raises Problem 404."""
    found = placements.context_by_id(connection, context_id)
    if found is None or found.course != course:
        raise Problem(404, "lti_context_unknown", wording.CONTEXT_UNKNOWN)
    return found


def link_of(connection: sa.Connection, context: Context, link_id: str) -> Link:
    """The link, if it is one of the context's; raises Problem 404."""
    for link in placements.links_of(connection, context):
        if link.id == link_id:
            return link
    raise Problem(404, "lti_link_unknown", wording.LINK_UNKNOWN)


def add_column(service: Service, context: Context, link: Link, by: By) -> None:
    """Have a column made, unless there is one. Raises Away."""
    if not link.line_item_url:
        unit = service.course.units.get(link.unit)
        syncing.add_column(
            service.engine,
            Reach.of_platforms(service.settings),
            context,
            link,
            unit.title if unit is not None else link.unit,
            by,
        )


def new_code(connection: sa.Connection, account_id: str, course: str, now: float) -> str:
    """A code for the course; raises Problem 404 without such a course."""
    offerings.course_of(connection, course)
    return invitations.invite(connection, account_id, course, now)
