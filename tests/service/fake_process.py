"""The service's processes on a small course: python -m tests.service.fake_process web PORT | worker|embedded SECONDS

The worker's grading is a fake. Each attempt appends its submission's id to the file `attempts` in the data
directory, takes SECONDS, and passes. With a file `broken` there, an attempt kills its own process instead.
"""

import os
import signal
import sys
import time
from collections.abc import Callable

from grader.grade import Progress
from grader.report import Report
from grader.seen import About
from grader.submission import Submission
from grader.unit import Unit
from service.database import Held
from service.processes import UNUSABLE, prepare, run_worker
from service.settings import from_environment
from service.worker import FakeGrading
from tests.service import samples


def work(seconds: float, *, embedded: bool) -> None:
    settings = from_environment()

    def answer(unit: Unit, submission: Submission, about: About, progress: Callable[[Progress], None]) -> Report:
        with (settings.data / "attempts").open("a") as attempts:
            attempts.write(f"{about.id}\n")
        if (settings.data / "broken").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        progress(Progress("mutants", 1, 2))
        time.sleep(seconds)
        return samples.report(about, unit.id, digest=submission.digest)

    prepare(settings)
    run_worker(settings, samples.course(), FakeGrading(answer), until_stdin_closes=embedded)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["web", port]:
            from service.web import run_web  # the worker does without the web framework

            prepare(from_environment())
            run_web(from_environment(), samples.course(), "127.0.0.1", int(port), until_stdin_closes=True)
        case ["worker" | "embedded" as kind, seconds]:
            try:
                work(float(seconds), embedded=kind == "embedded")
            except Held:
                sys.exit(UNUSABLE)
