"""A worker process whose grading is a fake: python -m tests.service.fake_worker SECONDS

Each attempt appends its submission's id to the file `attempts` in the data directory, takes SECONDS, and passes.
With a file `broken` in the data directory, an attempt kills its own process instead.
"""

import os
import signal
import sys
import time
from collections.abc import Callable

from grader.conclude import About
from grader.grade import Progress
from grader.report import Report
from grader.submission import Submission
from grader.unit import Unit
from service.processes import run_worker
from service.settings import from_environment
from service.worker import FakeGrading

from tests.service import samples


def main(seconds: float) -> None:
    settings = from_environment()

    def answer(unit: Unit, submission: Submission, about: About, progress: Callable[[Progress], None]) -> Report:
        with (settings.data / "attempts").open("a") as attempts:
            attempts.write(f"{about.id}\n")
        if (settings.data / "broken").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        progress(Progress("mutants", 1, 2))
        time.sleep(seconds)
        return samples.report(about, unit.id, digest=submission.digest)

    run_worker(settings, FakeGrading(answer), until_stdin_closes=True)


if __name__ == "__main__":
    main(float(sys.argv[1]))
