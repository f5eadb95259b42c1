"""Who is in a course, a class list or a token asked for goes in; members, changes and tokens come out."""

from datetime import datetime
from typing import Annotated, Literal

import sqlalchemy as sa
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from service import accounts, audit, offerings
from service.accounts import Account, Role
from service.answers import moment
from service.audit import By
from service.database import reading, writing
from service.dependencies import Caller, ClassEditor, ClassReader, CourseId, RequestId, Served
from service.people import invitations, inviting, members, mint, roster, users
from service.people import wording as sentences
from service.people.members import LastTeacher, Member, Source
from service.people.roster import Change
from service.people.users import Taken, User
from service.posted import NAME_CHARS
from service.problems import Problem, documented
from service.schedules import Line

router = APIRouter(tags=["people"])

HERE = "/v1/courses/{course}/members"
MEMBER = HERE + "/{login:path}"
ROSTER_CHARS = 200_000

MemberRole = Literal[Role.TEACHER, Role.GRADER, Role.STUDENT]
TokenRole = Literal[Role.STUDENT, Role.GRADER, Role.TEACHER, Role.LMS]
Login = Annotated[str, Path(max_length=users.LOGIN_CHARS, pattern=r"^[^\x00-\x20\x7f]+$")]
TokenId = Annotated[str, Path(pattern=r"^[0-9a-f]{1,32}$")]
Section = Annotated[Line, Field(max_length=members.SECTION_CHARS)]


class _Shown(BaseModel):
    model_config = ConfigDict(frozen=True)


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PartAnswer(_Shown):
    course: str
    role: Role


class MeAnswer(_Shown):
    """Who is asking, and what they may do where."""

    id: str
    role: Role = Field(description="person: it depends on the course, see `courses`")
    student: str | None
    label: str
    login: str | None = Field(description="null: a token that is nobody's")
    courses: tuple[PartAnswer, ...] | None = Field(description="null: every course, with `role`")


class MemberAnswer(_Shown):
    login: str
    name: str
    student: str = Field(description="by which submissions know the person")
    role: Role
    section: str
    source: Source
    since: datetime
    signs_in: bool = Field(description="has set a password")


class MemberList(_Shown):
    course: str
    members: tuple[MemberAnswer, ...]


class MemberBody(_Body):
    role: MemberRole = Role.STUDENT
    section: Section = ""
    name: Annotated[Line, Field(max_length=users.NAME_CHARS)] = ""
    student: Annotated[str, Field(max_length=NAME_CHARS, pattern=r"^[^\x00-\x1f\x7f]*$")] = Field(
        default="", description="of somebody new: by which submissions know them; the login if left out"
    )


class InvitationBody(_Body):
    login: str = Field(max_length=users.LOGIN_CHARS)


class InvitationAnswer(_Shown):
    login: str
    link: str = Field(description="with which the person sets a password, once")
    valid_until: datetime


class RosterBody(_Body):
    csv: str = Field(
        max_length=ROSTER_CHARS, description="its first line names the columns, such as email,name,student,section"
    )
    apply: bool = Field(default=False, description="false: only say what would change")
    digest: str | None = Field(default=None, max_length=64, description="apply only if the plan is still this one")


class FaultAnswer(_Shown):
    line: int
    message: str


class StepAnswer(_Shown):
    line: int
    login: str
    change: Change
    role: Role
    section: str
    note: str


class RosterAnswer(_Shown):
    course: str
    applied: bool
    digest: str
    faults: tuple[FaultAnswer, ...] = Field(description="with any of these nothing is applied")
    steps: tuple[StepAnswer, ...]
    absent: tuple[str, ...] = Field(description="logins of students of the course who are not in the list; they stay")


class TokenBody(_Body):
    role: TokenRole
    student: Annotated[str | None, Field(max_length=NAME_CHARS)] = None
    label: Annotated[Line, Field(max_length=mint.LABEL_CHARS)] = ""
    days: float | None = Field(default=None, gt=0, le=3_650, allow_inf_nan=False, description="null: without end")


class TokenAnswer(_Shown):
    id: str
    role: Role
    student: str | None
    label: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class TokenList(_Shown):
    tokens: tuple[TokenAnswer, ...]


class NewTokenAnswer(TokenAnswer):
    token: str = Field(description="shown this once")


@router.get("/v1/me", summary="Who is asking, and what they may do where", responses=documented(401))
def me(account: Caller, service: Served) -> MeAnswer:
    with reading(service.engine) as connection:
        user = users.find(connection, account.user) if account.user is not None else None
    parts = None
    if account.courses is not None:
        parts = tuple(PartAnswer(course=course, role=role) for course, role in account.courses.items())
    return MeAnswer(
        id=account.id,
        role=account.role,
        student=account.student,
        label=account.label,
        login=user.login if user is not None else None,
        courses=parts,
    )


# -- members ---------------------------------------------------------------------------------------------------------


@router.get(HERE, summary="Who is in a course", responses=documented(401, 403, 404, 422))
def course_members(
    account: ClassReader,
    course: CourseId,
    service: Served,
    role: MemberRole | None = None,
    section: Annotated[str | None, Query(max_length=members.SECTION_CHARS, pattern=r"^[^\x00]*$")] = None,
) -> MemberList:
    with reading(service.engine) as connection:
        offerings.course_of(connection, course)
        found = members.of_course(connection, course, role, section)
    return MemberList(course=course, members=tuple(map(_member, found)))


@router.put(
    MEMBER,
    summary="Put somebody into a course, or change their part",
    responses=documented(401, 403, 404, 409, 422),
)
def put_member(
    account: ClassEditor, course: CourseId, login: Login, body: MemberBody, service: Served, request_id: RequestId
) -> MemberAnswer:
    by = By(account, service.clock(), request_id)
    with writing(service.engine) as connection:
        offerings.course_of(connection, course)
        user = known_or_new(connection, login, body.name, body.student, by)
        try:
            members.put(connection, course, user, body.role, body.section, Source.API, by)
        except LastTeacher as error:
            raise Problem(409, "last_teacher", sentences.LAST_TEACHER) from error
        found = members.find(connection, course, user.id)
    assert found is not None
    return _member(found)


@router.delete(
    MEMBER,
    summary="Take somebody's part in a course away; what they submitted stays",
    status_code=204,
    response_class=Response,
    responses=documented(401, 403, 404, 409, 422),
)
def delete_member(
    account: ClassEditor, course: CourseId, login: Login, service: Served, request_id: RequestId
) -> Response:
    by = By(account, service.clock(), request_id)
    with writing(service.engine) as connection:
        remove(connection, course, login, by)
    return Response(status_code=204)


def known_or_new(connection: sa.Connection, login: str, name: str, student: str, by: By) -> User:
    """The person with this login, made if there is none; raises Problem 409 or 422."""
    if not users.is_login(login) or len(student or users.folded(login)) > NAME_CHARS:
        raise Problem(422, "login_invalid", sentences.login_invalid(login))
    user = users.find_by_login(connection, login)
    if user is not None and student and user.student != student:
        raise Problem(409, "login_taken", sentences.login_of_another(login, student))
    if user is not None:
        return user
    made_by = by.who.id if by.who is not None else None
    try:
        return users.add(connection, login=login, name=name, student=student, now=by.now, created_by=made_by)
    except Taken as error:
        raise Problem(409, f"{error.field}_taken", sentences.taken(error.field)) from error


def remove(connection: sa.Connection, course: str, login: str, by: By) -> User:
    """Take somebody's part in the course away; raises Problem 404, 409."""
    user = users.find_by_login(connection, login)
    try:
        if user is None or not members.remove(connection, course, user, by):
            raise Problem(404, "member_unknown", sentences.MEMBER_UNKNOWN)
    except LastTeacher as error:
        raise Problem(409, "last_teacher", sentences.LAST_TEACHER) from error
    return user


@router.post(
    "/v1/courses/{course}/invitations",
    summary="Make a link with which a member sets a password",
    responses=documented(401, 403, 404, 422),
)
def invite(
    request: Request,
    account: ClassEditor,
    caller: Caller,
    course: CourseId,
    body: InvitationBody,
    service: Served,
    request_id: RequestId,
) -> InvitationAnswer:
    by = By(account, service.clock(), request_id)
    with writing(service.engine) as connection:
        member = find_member(connection, course, body.login)
        code = invitation(connection, caller, member.user, course, by)
    return InvitationAnswer(
        login=member.user.login,
        link=invitations.link(str(request.base_url), code),
        valid_until=moment(by.now + invitations.LIFE_SECONDS),
    )


def find_member(connection: sa.Connection, course: str, login: str) -> Member:
    """The course's member with this login; raises Problem 404."""
    user = users.find_by_login(connection, login) if login.isprintable() else None
    found = members.find(connection, course, user.id) if user is not None else None
    if found is None:
        raise Problem(404, "member_unknown", sentences.MEMBER_UNKNOWN)
    return found


def invitation(connection: sa.Connection, caller: Account, user: User, course: str | None, by: By) -> str:
    """A new code for this person; raises Problem 403 if `caller`, not narrowed to a course, may make none."""
    if not inviting.may_invite(connection, caller, user):
        raise Problem(403, "link_refused", sentences.LINK_NOT_YOURS)
    audit.note(
        connection,
        by,
        action="password.invite",
        object=user.account,
        student=user.student,
        course=course,
    )
    return invitations.invite(connection, user.id, by.now)


@router.post(
    "/v1/courses/{course}/roster",
    summary="Say what a class list would change in a course, or apply it",
    responses=documented(401, 403, 404, 409, 422),
)
def import_roster(
    account: ClassEditor, course: CourseId, body: RosterBody, service: Served, request_id: RequestId
) -> RosterAnswer:
    by = By(account, service.clock(), request_id)
    if not body.apply:
        with reading(service.engine) as connection:
            offerings.course_of(connection, course)
            found = roster.plan(connection, course, body.csv)
    else:
        with writing(service.engine) as connection:
            offerings.course_of(connection, course)
            try:
                found = roster.apply(connection, course, body.csv, by, body.digest)
            except roster.Outdated as error:
                raise Problem(409, "roster_outdated", sentences.ROSTER_OUTDATED) from error
            except LastTeacher as error:
                raise Problem(409, "last_teacher", sentences.LAST_TEACHER) from error
    return RosterAnswer(
        course=course,
        applied=body.apply and not found.faults,
        digest=found.digest,
        faults=tuple(FaultAnswer(line=fault.line, message=fault.message) for fault in found.faults),
        steps=tuple(
            StepAnswer(
                line=step.row.line,
                login=step.user.login if step.user is not None else step.row.login,
                change=step.change,
                role=step.row.role,
                section=step.row.section,
                note=step.note,
            )
            for step in found.steps
        ),
        absent=tuple(member.user.login for member in found.absent),
    )


# -- tokens ----------------------------------------------------------------------------------------------------------

TOKENS = "/v1/courses/{course}/tokens"


@router.get(TOKENS, summary="The tokens that are limited to a course", responses=documented(401, 403, 404, 422))
def course_tokens(account: ClassEditor, course: CourseId, service: Served) -> TokenList:
    with reading(service.engine) as connection:
        offerings.course_of(connection, course)
        return TokenList(tokens=tuple(map(_token, mint.of_course(connection, course))))


@router.post(
    TOKENS,
    summary="Make a token that is limited to a course; it is shown this once",
    status_code=201,
    responses=documented(401, 403, 404, 422),
)
def make_token(
    account: ClassEditor, course: CourseId, body: TokenBody, service: Served, request_id: RequestId
) -> NewTokenAnswer:
    by = By(account, service.clock(), request_id)
    with writing(service.engine) as connection:
        offerings.course_of(connection, course)
        made = minted(connection, course, body, by)
    return NewTokenAnswer(**dict(_token(made.account)), token=made.secret)


@router.delete(
    TOKENS + "/{token_id}",
    summary="Make a token of a course useless",
    status_code=204,
    response_class=Response,
    responses=documented(401, 403, 404, 422),
)
def revoke_token(
    account: ClassEditor, course: CourseId, token_id: TokenId, service: Served, request_id: RequestId
) -> Response:
    by = By(account, service.clock(), request_id)
    with writing(service.engine) as connection:
        revoke(connection, course, token_id, by)
    return Response(status_code=204)


def minted(connection: sa.Connection, course: str | None, body: TokenBody, by: By) -> mint.Minted:
    """A new token as asked for; raises Problem 422."""
    if (body.role is Role.STUDENT) != bool(body.student):
        raise Problem(422, "student_missing", sentences.TOKEN_NEEDS_STUDENT)
    if body.student is not None and not body.student.isprintable():
        raise Problem(422, "student_missing", sentences.TOKEN_NEEDS_STUDENT)
    expires_at = by.now + body.days * 86_400 if body.days is not None else None
    return mint.for_course(
        connection, course, body.role, by, student=body.student, label=body.label, expires_at=expires_at
    )


def revoke(connection: sa.Connection, course: str, token_id: str, by: By) -> None:
    """Make a token of the course useless; raises Problem 404."""
    found = next((each for each in mint.of_course(connection, course) if each.id == token_id), None)
    if found is None:
        raise Problem(404, "token_unknown", sentences.TOKEN_UNKNOWN)
    mint.revoke(connection, found, course, by)


def _member(found: Member) -> MemberAnswer:
    return MemberAnswer(
        login=found.user.login,
        name=found.user.name,
        student=found.user.student,
        role=found.role,
        section=found.section,
        source=found.source,
        since=moment(found.created_at),
        signs_in=found.user.has_password,
    )


def _token(found: accounts.Account) -> TokenAnswer:
    return TokenAnswer(
        id=found.id,
        role=found.role,
        student=found.student,
        label=found.label,
        created_at=moment(found.created_at),
        expires_at=moment(found.expires_at) if found.expires_at is not None else None,
        revoked_at=moment(found.revoked_at) if found.revoked_at is not None else None,
    )
