"""The course's files, and versions of them that were sent, go in; the pages on which they are changed come out."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from grader import course_tree
from grader.wording import escaped
from service import views, walltime
from service.accounts import Account, Role
from service.audit import By
from service.course_files import loads, routes, trees, wording
from service.course_files.loads import Difference
from service.database import reading
from service.dependencies import RequestId, Served, Service, edits_somewhere
from service.problems import Problem
from service.views import Administering, Person

router = APIRouter(include_in_schema=False)

LIST = "/course-files"
ONE = LIST + "/{version}"

SHOWN = 50  # versions on the page


async def editing(account: Person) -> Account:
    return await edits_somewhere(account)


Editing = Annotated[Account, Depends(editing)]


@router.get(LIST)
def list_page(request: Request, account: Editing, service: Served) -> Response:
    return _list(request, account, service)


@router.post(LIST)
def read_again(request: Request, account: Administering, service: Served, request_id: RequestId) -> Response:
    try:
        course, found = routes.use(request, service, None, By(account, service.clock(), request_id))
    except Problem as problem:
        return _list(request, account, service, error=problem.message, status=problem.status)
    return _list(request, account, replace(service, course=course), found=found)


def _list(
    request: Request,
    account: Account,
    service: Service,
    *,
    found: tuple[Difference, ...] | None = None,
    error: str = "",
    status: int = 200,
) -> Response:
    with reading(service.engine) as connection:
        _, used = loads.chosen(connection)
        in_use = trees.find(connection, used) if used is not None else None
        versions = trees.newest(connection, SHOWN)
    return views.page(
        request,
        service,
        "course_files/list.html",
        account=account,
        status=status,
        folder=service.settings.course,
        units=list(service.course.units.values()),
        problems=service.course.problems,
        versions=versions,
        in_use=in_use,
        publishes=account.role is Role.ADMIN,
        found=found,
        error=error,
        time=lambda seconds: walltime.show(seconds, "UTC"),
    )


@router.get(ONE)
def version_page(request: Request, account: Editing, version: str, service: Served) -> Response:
    return _version(request, account, service, version)


@router.post(ONE)
def publish(request: Request, account: Administering, version: str, service: Served, request_id: RequestId) -> Response:
    try:
        course, found = routes.use(request, service, version, By(account, service.clock(), request_id))
    except Problem as problem:
        if problem.status == 404:
            raise
        return _version(request, account, service, version, error=problem.message, status=problem.status)
    return _list(request, account, replace(service, course=course), found=found)


@router.post(ONE + "/delete")
def withdraw(request: Request, account: Editing, version: str, service: Served, request_id: RequestId) -> Response:
    try:
        routes.delete(service, version, By(account, service.clock(), request_id))
    except Problem as problem:
        if problem.status == 404:
            raise
        return _version(request, account, service, version, error=problem.message, status=problem.status)
    return views.redirect(LIST)


def _version(
    request: Request, account: Account, service: Service, version: str, *, error: str = "", status: int = 200
) -> Response:
    with reading(service.engine) as connection:
        _, used = loads.chosen(connection)
        tree = routes.known(connection, version)
        try:
            changes = course_tree.changes(
                trees.files_in_use(connection, service.settings), trees.files_of(connection, version)
            )
        except OSError as problem:
            changes, error = [], wording.unreadable(str(problem))
    return views.page(
        request,
        service,
        "course_files/version.html",
        account=account,
        status=status,
        version=tree,
        is_used=tree.id == used,
        deletes=routes.may_delete(account, tree) and not tree.was_used,
        changes=changes,
        publishes=account.role is Role.ADMIN,
        error=error,
        time=lambda seconds: walltime.show(seconds, "UTC"),
        seen=lambda line: escaped(line.expandtabs(4)),  # what turns the direction of text could hide code
    )
