"""A teacher's question about a unit goes in; submissions by pages, or statistics, come out."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from grader.report import Verdict
from service import answers, links, listing, runs
from service.database import reading
from service.dependencies import ClassAsked, Served, Wanted
from service.posted import NAME_CHARS, STORABLE
from service.problems import documented

router = APIRouter()


@router.get(
    "/v1/units/{unit}/submissions",
    summary="The submissions of a unit, for teachers",
    tags=["class"],
    responses=documented(401, 403, 404, 422),
)
def class_submissions(
    request: Request,
    asked: ClassAsked,
    unit: Wanted,
    service: Served,
    student: Annotated[str | None, Query(max_length=NAME_CHARS, pattern=STORABLE)] = None,
    verdict: Verdict | None = None,
    status: runs.Status | None = None,
    sort: listing.Sort = listing.Sort.NEWEST,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    after: Annotated[str | None, Query(max_length=400, description="`next` of the page before")] = None,
) -> answers.SubmissionPage:
    wanted = listing.Filter(unit.id, student, asked.course, verdict, status)
    with reading(service.engine) as connection:
        found, key = listing.page(connection, wanted, sort, limit, after)
    return answers.SubmissionPage(submissions=found, next=links.next_page(request, after=key))


@router.get(
    "/v1/units/{unit}/stats",
    summary="What a class did with a unit, for teachers",
    tags=["class"],
    responses=documented(401, 403, 404, 422),
)
def class_stats(
    asked: ClassAsked,
    unit: Wanted,
    service: Served,
) -> answers.StatsAnswer:
    with reading(service.engine) as connection:
        return listing.stats(connection, unit.id, asked.course)
