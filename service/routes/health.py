"""Nothing goes in; whether the service lives, whether it can do its work, and its figures come out."""

import secrets
from typing import Annotated

import anyio
import sqlalchemy as sa
from fastapi import APIRouter, Depends, Header, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from service import answers, health, metrics, wording
from service.accounts import Role
from service.database import reading
from service.dependencies import Credentials, Served, Service, caller
from service.pressure import free_bytes
from service.problems import Problem, documented

router = APIRouter()

PATIENCE_SECONDS = 3.0  # with the database


@router.get("/livez", summary="The web process answers", tags=["health"])
async def livez() -> answers.Alive:
    return answers.Alive()


@router.get(
    "/readyz",
    summary="Whether submissions are taken in and graded, and what is missing if not",
    tags=["health"],
    response_model=answers.Ready,
    responses={503: {"description": "Something is missing", "model": answers.Ready}},
)
async def readyz(service: Served) -> Response:
    name = health.database_name(service.engine)
    try:
        with anyio.fail_after(PATIENCE_SECONDS):
            checks, workers = await anyio.to_thread.run_sync(_checks, service, abandon_on_cancel=True)
    except Exception as error:  # also what a broken schema raises: what is asked here is whether it works
        checks, workers = [health.of_database(name, type(error).__name__)], 0
    units = service.course.units
    checks.append(health.Check("course", bool(units), wording.units_state(len(units)) if units else wording.NO_UNITS))
    missing = tuple(f"{check.name}: {check.state}" for check in checks if not check.works)
    answer = answers.Ready(
        ready=not missing,
        missing=missing,
        workers=workers,
        checks=tuple(answers.CheckAnswer(name=c.name, ok=c.works, state=c.state) for c in checks),
    )
    return JSONResponse(answer.model_dump(mode="json"), 503 if missing else 200)


def _checks(service: Service) -> tuple[list[health.Check], int]:
    now = service.clock()
    with reading(service.engine) as connection:
        alive = health.alive(connection, now)
        waiting = health.waiting(connection, now)
        closed = service.pressure.state(service.settings, connection)
    free, least = free_bytes(service.settings.data), service.settings.min_free_bytes
    return [
        health.of_database(health.database_name(service.engine), None),
        *health.of_workers(alive),
        health.Check("disk", "disk_low" not in {c.code for c in closed}, wording.disk_state(free, least)),
        health.of_queue(waiting, "queue_full" in {c.code for c in closed}),
    ], len(alive)


def metrics_reader(request: Request, service: Served, credentials: Credentials) -> None:
    """The token of the setting metrics_token, which needs no database, or an administrator's."""
    sent, token = credentials.credentials if credentials else "", service.settings.metrics_token
    if token and secrets.compare_digest(sent.encode("utf-8", "surrogatepass"), token.encode()):
        return
    account = caller(request, service, credentials)
    if account.role is not Role.ADMIN:
        raise Problem(403, "role_missing", wording.metrics_closed(account.role))


@router.get(
    "/metrics",
    summary="Figures for Prometheus",
    tags=["health"],
    response_class=PlainTextResponse,
    dependencies=[Depends(metrics_reader)],
    responses=documented(401, 403),
)
def figures(service: Served, accept: Annotated[str, Header()] = "") -> Response:
    try:
        with reading(service.engine) as connection:
            stored = metrics.read(connection, service.clock())
    except sa.exc.SQLAlchemyError:
        stored = None
    text, media_type = metrics.exposition(service.stats.read(), stored, free_bytes(service.settings.data), accept)
    return Response(text, headers={"Content-Type": media_type})
