"""A question and an account go in; the service's answer comes out, or a Stop that says what to do."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from grader.ol.account import Account
from grader.ol.stops import Blocked, Ours, Refused, Usage
from grader.submission import Upload
from grader.unit import Unit

CONNECT_SECONDS = 10.0
READ_SECONDS = 60.0
LEAST_PAUSE_SECONDS = 0.5
MOST_SECONDS = 1800.0
Answer = dict[str, Any]


@contextmanager
def opened(account: Account) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {account.token}", "User-Agent": "ol"}
    timeout = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    with httpx.Client(base_url=account.server.rstrip("/"), headers=headers, timeout=timeout) as client:
        yield client


def ask(client: httpx.Client, method: str, path: str, **options: Any) -> httpx.Response:
    """The answer if it is no error. Raises Usage, Blocked, Refused or Ours with the service's own words."""
    try:
        answer = client.request(method, path, **options)
    except httpx.TransportError as error:
        raise Ours(f"{client.base_url} does not answer ({error}). Nothing was lost: try again later.") from error
    if answer.status_code < 400:
        return answer
    said, code = _said(answer)
    if answer.status_code >= 500:
        raise Ours(said)
    if answer.status_code in (401, 403):
        raise Usage(f"{said} Log in with: ol login")
    raise Blocked(f"{said} With ol, that is --ref-deps.") if code == "needs_dep" else Refused(said)


def linked(client: httpx.Client, path: str) -> str:
    """Where a link of the service's leads: to the same host, whatever path the service is served under. Raises Ours."""
    if not path.startswith("/") or path.startswith("//"):
        raise Ours(f"The service names an address that is not its own: {path}")
    return str(client.base_url.join(path))


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
) -> Answer:
    """Hand in; where the submission stands comes back."""
    parts = [(stem, (upload.name, upload.data)) for stem, upload in files.items()]
    parts += [("tests", (upload.name, upload.data)) for upload in tests]
    data = {"ref_deps": ref_deps, **({"course": account.course} if account.course else {})}
    answer = ask(client, "POST", f"/v1/units/{unit.id}/submissions", files=parts, data=data)
    return dict(answer.json())


def follow(client: httpx.Client, standing: Answer, on_change: Callable[[Answer], None]) -> Answer:
    """Ask until the submission has ended; the last answer."""
    give_up_at = time.monotonic() + MOST_SECONDS
    while standing["status"] in ("queued", "running"):
        on_change(standing)
        if time.monotonic() > give_up_at:
            raise Ours(f"It still waits. Look again with: ol status {standing['unit']}")
        answer = ask(client, "GET", linked(client, standing["links"]["self"]))
        standing = dict(answer.json())
        time.sleep(max(LEAST_PAUSE_SECONDS, min(5.0, float(answer.headers.get("Retry-After", 1)) / 2)))
    return standing
