"""Nothing goes in; whether the service lives, and whether it can do its work, comes out."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response

from service import answers, runs, wording
from service.database import reading
from service.dependencies import Served

router = APIRouter()


@router.get("/livez", summary="The web process answers", tags=["health"])
def livez() -> answers.Alive:
    return answers.Alive()


@router.get(
    "/readyz",
    summary="Whether submissions are taken in and graded, and what is missing if not",
    tags=["health"],
    response_model=answers.Ready,
    responses={503: {"description": "Something is missing", "model": answers.Ready}},
)
def readyz(service: Served) -> Response:
    missing: list[str] = []
    workers: list[runs.Worker] = []
    try:
        with reading(service.engine) as connection:
            workers = runs.alive(connection, service.clock())
    except Exception as error:
        missing.append(wording.database_missing(type(error).__name__))
    else:
        if not workers:
            missing.append(wording.WORKER_MISSING)
        missing += sorted({lack for worker in workers if not worker.ready for lack in worker.missing})
    if not service.course.units:
        missing.append(wording.UNITS_MISSING)
    answer = answers.Ready(ready=not missing, missing=tuple(missing), workers=len(workers))
    return JSONResponse(answer.model_dump(mode="json"), 503 if missing else 200)
