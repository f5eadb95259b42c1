"""A question and an account go in; the service's answer comes out, or a Stop that says what to do."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from grader.ol.account import Account
from grader.ol.stops import Blocked, Ours, Refused, Usage
from grader.report import Verdict
from grader.submission import Upload
from grader.unit import Unit

CONNECT_SECONDS = 10.0
READ_SECONDS = 60.0
LEAST_PAUSE_SECONDS = 0.5
MOST_PAUSE_SECONDS = 5.0
MOST_SECONDS = 1800.0


class Answer(BaseModel):
    """What is read of an answer of the service; what else it holds is passed over."""

    model_config = ConfigDict(frozen=True)


class Links(Answer):
    here: str = Field(alias="self")


class SubmissionLinks(Links):
    report: str


class Doing(Answer):
    phase: str
    done: int
    total: int


class Standing(Answer):
    """Where a submission stands."""

    id: str
    unit: str
    status: str
    position: int | None = None
    progress: Doing | None = None
    attempts_left: int | None = None
    links: SubmissionLinks


class Graded(Answer):
    """A report."""

    verdict: Verdict


class Offered(Answer):
    """A unit, as one student may hand it in."""

    attempts_left: int | None


class Summary(Answer):
    links: Links


class Offer(Answer):
    units: tuple[Summary, ...]


class Grade(Answer):
    """What counts of a student's submissions of a unit."""

    unit: str
    verdict: Verdict | None
    final_score: float | None


class Grades(Answer):
    grades: tuple[Grade, ...]


Form = TypeVar("Form", bound=Answer)


@contextmanager
def opened(account: Account) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {account.token}", "User-Agent": "ol"}
    timeout = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    try:
        client = httpx.Client(base_url=account.server.rstrip("/"), headers=headers, timeout=timeout)
    except (httpx.InvalidURL, UnicodeEncodeError) as error:
        raise Usage(
            f"{account.server} with this token cannot be asked ({error}). Log in anew with: ol login"
        ) from error
    with client:
        yield client


def ask(client: httpx.Client, method: str, path: str, **options: Any) -> httpx.Response:
    """The answer if it is no error. Raises Usage, Blocked, Refused or Ours with the service's own words."""
    try:
        answer = client.request(method, path, **options)
    except httpx.RequestError as error:
        raise Ours(f"{client.base_url} does not answer ({error}). Nothing was lost: try again later.") from error
    if answer.is_success:
        return answer
    if answer.is_redirect:
        elsewhere = answer.headers["Location"]
        raise Usage(f"{client.base_url} leads elsewhere, to {elsewhere}: log in there with: ol login ADDRESS")
    said, code = _said(answer)
    if answer.status_code >= 500:
        raise Ours(said)
    if answer.status_code in (401, 403):
        raise Usage(f"{said} Log in with: ol login")
    raise Blocked(f"{said} With ol, that is --ref-deps.") if code == "needs_dep" else Refused(said)


def read(answer: httpx.Response, form: type[Form]) -> Form:
    """Raises Ours where the answer lacks what is read of it."""
    try:
        return form.model_validate_json(answer.content)
    except ValidationError as error:
        first = error.errors()[0]
        lack = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
        raise Ours(
            f"{answer.url} answers otherwise than an autograder that this ol knows ({lack}). "
            "Look whether the address is right, and ol as new as the service."
        ) from error


def linked(client: httpx.Client, path: str) -> str:
    """Where a link of the service's leads: to the same host, whatever path the service is served under. Raises Ours."""
    if not path.startswith("/") or path.startswith("//"):
        raise Ours(f"The service names an address that is not its own: {path}")
    try:
        return str(client.base_url.join(path))
    except httpx.InvalidURL as error:
        raise Ours(f"The service names an address that is none: {path}") from error


def _said(answer: httpx.Response) -> tuple[str, str]:
    """What a problem says, and its code."""
    try:
        problem = answer.json()
        text, path = str(problem["detail"]), problem.get("path")
        return (f"{path}: {text}" if path else text), str(problem.get("code", ""))
    except (ValueError, KeyError, TypeError):
        return f"The service answered {answer.status_code} {answer.reason_phrase}.", ""


def post(
    client: httpx.Client, account: Account, unit: Unit, files: dict[str, Upload], tests: list[Upload], ref_deps: str
) -> Standing:
    """Hand in; where the submission stands comes back."""
    parts = [(stem, (upload.name, upload.data)) for stem, upload in files.items()]
    parts += [("tests", (upload.name, upload.data)) for upload in tests]
    data = {"ref_deps": ref_deps, **({"course": account.course} if account.course else {})}
    return read(ask(client, "POST", f"/v1/units/{unit.id}/submissions", files=parts, data=data), Standing)


def follow(client: httpx.Client, standing: Standing, on_change: Callable[[Standing], None]) -> Standing:
    """Ask until the submission has ended; the last answer."""
    give_up_at = time.monotonic() + MOST_SECONDS
    while standing.status in ("queued", "running"):
        on_change(standing)
        if time.monotonic() > give_up_at:
            raise Ours(f"It still waits. Look again with: ol status {standing.unit}")
        answer = ask(client, "GET", linked(client, standing.links.here))
        standing = read(answer, Standing)
        time.sleep(pause_seconds(answer.headers.get("Retry-After", "")))
    return standing


def pause_seconds(retry_after: str) -> float:
    """Half of what the service asks for, within bounds; it may ask by a date, which is not read."""
    asked = float(retry_after) if retry_after.strip().isdecimal() else 1.0
    return max(LEAST_PAUSE_SECONDS, min(MOST_PAUSE_SECONDS, asked / 2))
