"""Files of the course go in and are a version that changes nothing; a wish to use one, or to read the machine's files
again, goes in; what that changes comes out.

Who teaches a course looks and proposes; only administrators take anything into use, for it counts in every course and
is executed. (docs/decisions/0229)
"""

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal

import sqlalchemy as sa
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from grader import course_tree
from grader.errors import Rejected
from grader.unit import Course, UnitProblem
from grader.units import load_course
from service import answers, links
from service import wording as service_wording
from service.accounts import Account, Role
from service.audit import By
from service.course_files import loads, trees, wording
from service.course_files.loads import Difference
from service.course_files.trees import Tree
from service.database import reading, writing
from service.dependencies import Administrator, RequestId, Served, Service, edits_somewhere
from service.posted import one_field
from service.pressure import DISK_RETRY_SECONDS, Closed
from service.problems import Problem, documented
from service.regrading.answers import ChangeAnswer
from service.upload import MAX_FIELD_BYTES, Form, read_form

router = APIRouter(tags=["class"])

Editing = Annotated[Account, Depends(edits_somewhere)]
"""Who changes what holds for some class."""

HERE = "/v1/course/versions"
MOST = 200
NOTE_CHARS = 500
CHECK_SECONDS = 5
LEAST_FREE = 2  # times what intake needs on the disk: versions are not what closes it
_CHECKING = threading.Lock()  # a tree takes memory and time: one at a time in a process


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class UnitChange(_Answer):
    unit: str
    how: Literal["added", "removed", "changed"]
    parts: tuple[ChangeAnswer, ...] = Field(description="of a unit that was changed")


class ReloadAnswer(_Answer):
    """What taking files into use changed. Workers grade by it as soon as they have started anew."""

    digest: str
    changed: tuple[UnitChange, ...]
    problems: tuple[answers.UnitProblemAnswer, ...] = Field(description="units that could not be loaded")


class VersionLinks(_Answer):
    self: str
    page: str
    files: str


class VersionAnswer(_Answer):
    """Files of the course that were sent: used only if somebody publishes them."""

    id: str
    made_at: datetime
    sender: str
    note: str
    in_use: bool
    usable: bool = Field(description="false: a unit in use would be lost; see the problems")
    changed: tuple[UnitChange, ...] = Field(description="against what was in use when it was sent")
    problems: tuple[answers.UnitProblemAnswer, ...]
    links: VersionLinks


class VersionList(_Answer):
    versions: tuple[VersionAnswer, ...] = Field(description="the newest first; none in use: the machine's files are")


_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["note"],
                    "properties": {
                        "files": {
                            "type": "array",
                            "items": {"type": "string", "format": "binary"},
                            "description": "a .zip or .tar.gz with paths as in /v1/course/files, or single files",
                        },
                        "into": {"type": "string", "description": "the folder of single files: course/mutants/UNIT"},
                        "remove": {"type": "string", "description": "files or folders to be removed, one a line"},
                        "whole": {"type": "string", "enum": ["on"], "description": "what is not sent is removed"},
                        "note": {"type": "string", "maxLength": NOTE_CHARS},
                    },
                }
            }
        },
    }
}


@router.post(
    HERE,
    summary="Propose files of the course; they are checked, and change nothing yet",
    status_code=201,
    responses=documented(400, 401, 403, 408, 409, 413, 415, 422, 429),
    openapi_extra=_FORM,
)
async def propose(
    request: Request, account: Editing, service: Served, request_id: RequestId, response: Response
) -> VersionAnswer:
    settings, pressure = service.settings, service.pressure
    free, least = pressure.free_bytes(settings.data), LEAST_FREE * settings.min_free_bytes
    if free < least:
        raise Closed("disk_low", service_wording.disk_low(free, least), DISK_RETRY_SECONDS).problem()
    async with pressure.place(settings, account.user or account.id):
        form = await read_form(request, settings.max_body_bytes, settings.max_upload_seconds)
        made = await _checked(service, form, By(account, service.clock(), request_id))
    response.headers["Location"] = links.to(f"{HERE}/{made.id}")
    return made


async def _checked(service: Service, form: Form, by: By) -> VersionAnswer:
    if not _CHECKING.acquire(blocking=False):
        headers = {"Retry-After": str(CHECK_SECONDS)}
        raise Problem(429, "check_under_way", wording.CHECK_UNDER_WAY, headers=headers)
    try:
        return await run_in_threadpool(_propose, service, form, by)
    finally:
        _CHECKING.release()


def _propose(service: Service, form: Form, by: By) -> VersionAnswer:
    note, into = one_field(form, "note", NOTE_CHARS), one_field(form, "into")
    removed = "\n".join(form.fields.get("remove", ()))[:MAX_FIELD_BYTES].splitlines()
    uploads = [upload for upload in form.files.get("files", ()) if upload.name]
    if not note:
        raise Problem(422, "note_missing", wording.NOTE_MISSING)
    assert by.who is not None
    try:
        with reading(service.engine) as connection:
            if trees.unused(connection, trees.person(by.who)) >= trees.MOST_PROPOSED:
                raise Problem(409, "too_many_versions", wording.too_many(trees.MOST_PROPOSED))
            before = trees.files_in_use(connection, service.settings)
    except OSError as error:
        raise _unreadable(error) from error
    try:
        sent = course_tree.taken(uploads, into)
        if not sent and not any(map(str.strip, removed)):
            raise Problem(422, "nothing_sent", wording.NOTHING_SENT)
        after = course_tree.laid_over(before, sent, removed, whole="whole" in form.fields)
    except Rejected as error:
        raise Problem(422, error.code, error.message, path=error.path) from error
    if after == before:
        raise Problem(422, "nothing_changed", wording.NOTHING_CHANGED)
    found = trees.check(after, service.course)
    with writing(service.engine) as connection:
        return _version(trees.add(connection, after, found, note, by), None)


def _unreadable(error: OSError) -> Problem:
    return Problem(409, "course_unusable", wording.unreadable(str(error)))


@router.get(HERE, summary="Files of the course that were proposed or used", responses=documented(401, 403, 422))
def versions(account: Editing, service: Served, limit: Annotated[int, Query(ge=1, le=MOST)] = 50) -> VersionList:
    with reading(service.engine) as connection:
        _, used = loads.chosen(connection)
        found = trees.newest(connection, limit)
    return VersionList(versions=tuple(_version(tree, used) for tree in found))


@router.get(HERE + "/{version}", summary="A version of the course's files", responses=documented(401, 403, 404))
def version(account: Editing, version: str, service: Served) -> VersionAnswer:
    with reading(service.engine) as connection:
        _, used = loads.chosen(connection)
        return _version(known(connection, version), used)


@router.delete(
    HERE + "/{version}",
    summary="Delete a version that was never used: one's own, or as an administrator anybody's",
    status_code=204,
    responses=documented(401, 403, 404, 409),
)
def withdraw(account: Editing, version: str, service: Served, request_id: RequestId) -> None:
    delete(service, version, By(account, service.clock(), request_id))


def delete(service: Service, version: str, by: By) -> None:
    """Raises Problem 403, 404 or 409 for a version that is not the caller's to delete, or nobody's."""
    assert by.who is not None
    with writing(service.engine) as connection:
        tree = held(connection, version)
        if not may_delete(by.who, tree):
            raise Problem(403, "version_of_another", wording.OF_ANOTHER)
        if tree.was_used:
            raise Problem(409, "version_used", wording.WAS_USED)
        trees.delete(connection, tree, by)


def may_delete(account: Account, tree: Tree) -> bool:
    """Whether it is theirs, so far as it was never used."""
    return account.role is Role.ADMIN or trees.person(account) == tree.whose


def known(connection: sa.Connection, version: str) -> Tree:
    """Raises Problem 404 for what names no version."""
    tree = trees.find(connection, version) if version.isalnum() else None
    if tree is None:
        raise Problem(404, "version_unknown", wording.VERSION_UNKNOWN)
    return tree


def held(connection: sa.Connection, version: str) -> Tree:
    """The same of one that nobody else uses or deletes before the caller's transaction has ended."""
    trees.hold(connection, known(connection, version).id)
    return known(connection, version)


@router.get(
    "/v1/course/files",
    summary="The course's files as they are in use, or those of a version, as a .zip",
    response_class=Response,
    responses={200: {"content": {"application/zip": {}}}, **documented(401, 403, 404, 409)},
)
def files(account: Editing, service: Served, version: str = "") -> Response:
    try:
        with reading(service.engine) as connection:
            if not version:
                found = trees.files_in_use(connection, service.settings)
            else:
                found = trees.files_of(connection, known(connection, version).id)
    except OSError as error:
        raise _unreadable(error) from error
    return Response(
        course_tree.packed(found),
        media_type="application/zip",
        headers={"Content-Disposition": 'attachment; filename="course.zip"'},
    )


@router.post(
    HERE + "/{version}/publish",
    summary="Take a version of the course's files into use, also an earlier one again; for administrators",
    responses=documented(401, 403, 404, 409),
)
def publish(
    account: Administrator, request: Request, version: str, service: Served, request_id: RequestId
) -> ReloadAnswer:
    return _reloaded(*use(request, service, version, By(account, service.clock(), request_id)))


@router.post(
    "/v1/course/reload",
    summary="Read the files on the machine again and take them into use, for administrators",
    responses=documented(401, 403, 409),
)
def reload(account: Administrator, request: Request, service: Served, request_id: RequestId) -> ReloadAnswer:
    return _reloaded(*use(request, service, None, By(account, service.clock(), request_id)))


def use(request: Request, service: Service, tree: str | None, by: By) -> tuple[Course, tuple[Difference, ...]]:
    """Take a version into use, None: the machine's files. Raises Problem 404, and 409 for files that cannot be used."""
    try:
        with reading(service.engine) as connection:
            if tree is not None:
                known(connection, tree)
            root = trees.laid(connection, service.settings, tree)
        course = load_course(root)
        found = loads.differences(service.course, course)
    except OSError as error:
        raise _unreadable(error) from error
    except loads.Unusable as error:
        raise Problem(409, "course_unusable", wording.unusable(error.problems)) from error
    with writing(service.engine) as connection:
        if tree is not None:
            held(connection, tree)
        if course.digest != service.course.digest or loads.chosen(connection)[1] != tree:
            loads.note(connection, course, tree, found, by)
        load, _ = loads.chosen(connection)
    request.app.state.service = replace(service, course=course, course_load=load)
    return course, found


def _reloaded(course: Course, found: Sequence[Difference]) -> ReloadAnswer:
    return ReloadAnswer(digest=course.digest, changed=_changed(found), problems=_problems(course.problems))


def _changed(found: Sequence[Difference]) -> tuple[UnitChange, ...]:
    shown = ({"unit": each.unit, "how": each.how, "parts": [vars(part) for part in each.changes]} for each in found)
    return tuple(map(UnitChange.model_validate, shown))


def _problems(found: Sequence[UnitProblem]) -> tuple[answers.UnitProblemAnswer, ...]:
    return tuple(answers.UnitProblemAnswer(**vars(problem)) for problem in found)


def _version(tree: Tree, used: str | None) -> VersionAnswer:
    return VersionAnswer(
        id=tree.id,
        made_at=answers.moment(tree.made_at),
        sender=tree.sender,
        note=tree.note,
        in_use=tree.id == used,
        usable=tree.found.usable,
        changed=_changed(tree.found.changed),
        problems=_problems(tree.found.problems),
        links=VersionLinks(
            self=links.to(f"{HERE}/{tree.id}"),
            page=links.to(f"/course-files/{tree.id}"),
            files=links.to(f"/v1/course/files?version={tree.id}"),
        ),
    )
