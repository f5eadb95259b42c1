"""The pages about learning platforms: administrators register them and let deployments in; a teacher connects a
platform's course and reads its members. What they do is what api.py does.
"""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response
from pydantic import ValidationError

from service import offerings, views
from service.answers import moment
from service.audit import By
from service.database import reading, writing
from service.dependencies import CourseId, RequestId, Served, Service
from service.lti import answers, invitations, keys, placements, platforms, syncing, wording
from service.lti.answers import PlatformBody
from service.lti.api import add_column, connected, known, link_of, new_code, platform_of
from service.lti.routes import LAUNCH, REGISTER, base_url
from service.lti.speaking import Away
from service.outbound import Reach
from service.problems import Problem
from service.views import Administering, Posted, Teaching, text

router = APIRouter(include_in_schema=False)

PlatformId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]
ContextId = PlatformId
LinkId = PlatformId

FIELDS = (
    ("name", "Name, as people here know it", "text"),
    ("issuer", "Issuer (platform id)", "text"),
    ("client_id", "Client id", "text"),
    ("auth_login_url", "Authentication request URL", "url"),
    ("auth_token_url", "Access token URL", "url"),
    ("key_set_url", "Public keyset URL", "url"),
    ("audience", "Audience of token requests, if it is not the access token URL", "text"),
    ("frame_origin", "Origin that shows us in a frame, like https://platform.example", "url"),
)
REQUIRED = ("name", "issuer", "client_id", "auth_login_url", "auth_token_url", "key_set_url")


# -- administrators --------------------------------------------------------------------------------------------------


@router.get("/platforms")
def platforms_page(request: Request, service: Served, account: Administering) -> Response:
    return _list(request, service)


@router.post("/platforms")
def register(
    request: Request, service: Served, account: Administering, form: Posted, request_id: RequestId
) -> Response:
    said = {name: text(form, name) for name, _, _ in FIELDS}
    try:
        wanted = platform_of(PlatformBody(**said), "")  # type: ignore[arg-type]  # its fields are texts but one
    except (Problem, ValidationError) as error:
        return _list(request, service, said=said, error=_said_of(error), status=422)
    deployment = text(form, "deployment")[:255]
    with writing(service.engine) as connection:
        by = By(account, service.clock(), request_id)
        made = platforms.register(connection, wanted, by)
        if made is not None and deployment:
            platforms.allow(connection, made.id, deployment, by)
    if made is None:
        return _list(request, service, said=said, error=wording.PLATFORM_KNOWN, status=409)
    return views.redirect(f"/platforms/{made.id}")


@router.post("/lti/invitations")
def invite(request: Request, service: Served, account: Administering, form: Posted) -> Response:
    with writing(service.engine) as connection:
        code = invitations.invite(connection, account.id, None, service.clock())
    return _list(request, service, invitation=f"{base_url(request)}{REGISTER}?invitation={code}")


@router.post("/lti/keys")
def rotate(request: Request, service: Served, account: Administering, form: Posted, request_id: RequestId) -> Response:
    with writing(service.engine) as connection:
        by = By(account, service.clock(), request_id)
        keys.rotate(connection, by, at_once=text(form, "at_once") == "1")
    return views.redirect("/platforms")


@router.get("/platforms/{platform}")
def platform_page(request: Request, service: Served, account: Administering, platform: PlatformId) -> Response:
    return _one(request, service, platform)


@router.post("/platforms/{platform}")
def change(
    request: Request,
    service: Served,
    account: Administering,
    platform: PlatformId,
    form: Posted,
    request_id: RequestId,
) -> Response:
    said = {name: text(form, name) for name, _, _ in FIELDS}
    retired = text(form, "retired") == "1"
    try:
        wanted = platform_of(PlatformBody(**said), platform)  # type: ignore[arg-type]
    except (Problem, ValidationError) as error:
        return _one(request, service, platform, said=said, error=_said_of(error), status=422)
    with writing(service.engine) as connection:
        by = By(account, service.clock(), request_id)
        before = known(connection, platform)
        changed = platforms.change(connection, wanted, by)
        if changed is not None and retired != (before.retired_at is not None):
            platforms.retire(connection, platform, by, back=not retired)
    if changed is None:
        return _one(request, service, platform, said=said, error=wording.PLATFORM_KNOWN, status=409)
    return views.redirect(f"/platforms/{platform}")


@router.post("/platforms/{platform}/deployments")
def allow(
    service: Served, account: Administering, platform: PlatformId, form: Posted, request_id: RequestId
) -> Response:
    deployment = text(form, "deployment")[:255]
    with writing(service.engine) as connection:
        known(connection, platform)
        if deployment:
            by = By(account, service.clock(), request_id)
            platforms.allow(connection, platform, deployment, by, allowed=text(form, "allowed") != "0")
    return views.redirect(f"/platforms/{platform}")


def _list(
    request: Request,
    service: Service,
    *,
    said: dict[str, str] | None = None,
    error: str = "",
    invitation: str = "",
    status: int = 200,
) -> Response:
    here = base_url(request)
    with reading(service.engine) as connection:
        found = [answers.shown_platform(connection, each) for each in platforms.all_platforms(connection)]
        published = answers.shown_keys(keys.published(connection, service.clock()))
    return views.page(
        request,
        service,
        "lti/platforms.html",
        status=status,
        platforms=found,
        keys=published.keys,
        fields=FIELDS,
        required=REQUIRED,
        said=said or {},
        error=error,
        invitation=invitation,
        ours=(
            ("Initiate login URL", f"{here}/lti/login"),
            ("Redirection and target link URI", f"{here}{LAUNCH}"),
            ("Public keyset URL", f"{here}/lti/jwks"),
        ),
    )


def _one(
    request: Request,
    service: Service,
    platform: str,
    *,
    said: dict[str, str] | None = None,
    error: str = "",
    status: int = 200,
) -> Response:
    with reading(service.engine) as connection:
        found = answers.shown_platform(connection, known(connection, platform))
    return views.page(
        request,
        service,
        "lti/platform.html",
        status=status,
        platform=found,
        fields=FIELDS,
        required=REQUIRED,
        said=said or found.model_dump(),
        error=error,
    )


def _said_of(error: Exception) -> str:
    if isinstance(error, Problem):
        return error.message
    assert isinstance(error, ValidationError)
    return "\n".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())


# -- teachers --------------------------------------------------------------------------------------------------------


@router.get("/courses/{course}/platforms")
def course_page(request: Request, service: Served, account: Teaching, course: CourseId) -> Response:
    return _course(request, service, course)


@router.post("/courses/{course}/platforms/codes")
def code(request: Request, service: Served, account: Teaching, course: CourseId, form: Posted) -> Response:
    with writing(service.engine) as connection:
        made = new_code(connection, account.id, course, service.clock())
    return _course(request, service, course, code=made)


@router.post("/courses/{course}/platforms/{context}/members")
def read_members(
    request: Request,
    service: Served,
    account: Teaching,
    course: CourseId,
    context: ContextId,
    form: Posted,
    request_id: RequestId,
) -> Response:
    with reading(service.engine) as connection:
        found = connected(connection, course, context)
    try:
        done = syncing.sync(
            service.engine, Reach.of_platforms(service.settings), found, By(account, service.clock(), request_id)
        )
    except Away as error:
        return _course(request, service, course, error=wording.members_not_read(str(error)), status=502)
    return _course(request, service, course, notice=wording.members_read(done.listed, done.changed, done.left))


@router.post("/courses/{course}/platforms/{context}/links/{link}/column")
def make_column(
    request: Request,
    service: Served,
    account: Teaching,
    course: CourseId,
    context: ContextId,
    link: LinkId,
    form: Posted,
    request_id: RequestId,
) -> Response:
    with reading(service.engine) as connection:
        found = connected(connection, course, context)
        wanted = link_of(connection, found, link)
    try:
        add_column(service, found, wanted, By(account, service.clock(), request_id))
    except Away as error:
        return _course(request, service, course, error=wording.column_not_made(str(error)), status=502)
    return _course(request, service, course, notice=wording.COLUMN_MADE)


@router.post("/courses/{course}/platforms/{context}/disconnect")
def disconnect(
    service: Served, account: Teaching, course: CourseId, context: ContextId, form: Posted, request_id: RequestId
) -> Response:
    with writing(service.engine) as connection:
        found = connected(connection, course, context)
        placements.disconnect(connection, found, By(account, service.clock(), request_id))
    return views.redirect(f"/courses/{course}/platforms")


def _course(
    request: Request,
    service: Service,
    course: str,
    *,
    code: str = "",
    notice: str = "",
    error: str = "",
    status: int = 200,
) -> Response:
    with reading(service.engine) as connection:
        found = offerings.course_of(connection, course)
        contexts = answers.shown_contexts(connection, course).contexts
        names = {each.id: each.name for each in platforms.all_platforms(connection)}
    until = moment(service.clock() + invitations.LIFE_SECONDS)
    return views.page(
        request,
        service,
        "lti/course.html",
        status=status,
        offering=found,
        contexts=contexts,
        names=names,
        code=code,
        until=until,
        notice=notice,
        error=error,
    )
