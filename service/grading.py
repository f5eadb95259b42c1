"""A unit and a submission go to the grader with this machine's sandbox and oracles; the report comes out."""

import threading
from collections.abc import Callable
from contextlib import ExitStack

from grader.ahead import made_beside
from grader.cases_ahead import CasesAhead
from grader.grade import Progress, grade
from grader.memory import SuiteMemory
from grader.oracle import OracleProcesses
from grader.report import Report
from grader.seen import About
from grader.stop import Stop
from grader.submission import Submission
from grader.unit import Course, Unit
from sandbox.docker_engine import IMAGE, DockerSandbox
from sandbox.kept import kept_in
from sandbox.process import ProcessSandbox
from sandbox.runtimes import PLAIN
from service import conditions
from service.admission import sized
from service.settings import Settings


class SandboxGrading:
    """Grades in the sandbox the settings name. It is opened once and kept, with its warm pool and the oracles of the
    course's units, which are started before the first submission comes."""

    def __init__(self, settings: Settings, course: Course) -> None:
        self._settings = sized(settings)
        self._oracles = [unit.oracle for unit in course.units.values() if unit.oracle is not None]
        self._oracle = OracleProcesses()
        self._cases = CasesAhead(self._oracle)
        self._memory = SuiteMemory() if settings.cache else None
        self._sandbox: DockerSandbox | ProcessSandbox | None = None
        self._runtimes = sorted({PLAIN, *(unit.runtime for unit in course.units.values())})
        self._course_digest = course.digest
        self.conditions = ""
        self._kept = ExitStack()
        self._keeps = False
        self._lock = threading.Lock()

    def open(self) -> None:
        """Raises SandboxError or OracleError, saying what is missing."""
        with self._lock:
            if self._sandbox is None:
                self._sandbox = self._opened()
            if not self._keeps:
                self._keeps = True
                self._keep_renderings()
        for oracle in self._oracles:
            self._oracle.open(oracle)

    def _keep_renderings(self) -> None:
        """Have what every submission needs made before the first comes, beside everything else."""
        folder = self._settings.data / "renderings"
        self._kept.enter_context(kept_in(folder))
        self._kept.enter_context(made_beside(self._settings.course, folder))

    def _opened(self) -> DockerSandbox | ProcessSandbox:
        """A new sandbox; a session in it shows that it works, and under what conditions it grades."""
        sandbox = _sandbox(self._settings)
        try:
            environments = []
            for runtime in self._runtimes:
                with sandbox.session(runtime=runtime) as session:
                    environments.append(session.environment)
        except BaseException:
            if isinstance(sandbox, DockerSandbox):
                sandbox.close()
            raise
        self.conditions = conditions.digest(environments, self._course_digest, runtime=self._settings.runtime)
        return sandbox

    def grade(
        self,
        unit: Unit,
        submission: Submission,
        *,
        about: About,
        progress: Callable[[Progress], None],
        stop: Stop,
        anew: bool = False,
    ) -> Report:
        self.open()
        sandbox = self._sandbox
        if sandbox is None:
            raise RuntimeError("grading was closed")
        with self._cases.grading(unit) as seeded:
            return grade(
                unit,
                submission,
                sandbox=sandbox,
                oracle=seeded,
                seed=seeded.seed,
                about=about,
                progress=progress,
                stop=stop,
                memory=None if anew else self._memory,
            )

    @property
    def ready(self) -> int:
        sandbox = self._sandbox
        return sandbox.ready if isinstance(sandbox, DockerSandbox) else 0

    def expect(self, more: bool) -> None:
        sandbox = self._sandbox
        if isinstance(sandbox, DockerSandbox):
            sandbox.expect(more)

    def tidy(self) -> None:
        """Remove the containers that dead workers of this machine have left."""
        sandbox = self._sandbox
        if isinstance(sandbox, DockerSandbox):
            sandbox.reap()

    def close(self) -> None:
        with self._lock:
            sandbox, self._sandbox = self._sandbox, None
        if isinstance(sandbox, DockerSandbox):
            sandbox.close()
        self._cases.close()
        self._oracle.close()
        self._kept.close()


def _sandbox(settings: Settings) -> DockerSandbox | ProcessSandbox:
    if settings.sandbox == "process":
        return ProcessSandbox(jobs=settings.jobs)
    return DockerSandbox(
        image=settings.image or IMAGE,
        jobs=settings.jobs,
        pool_size=settings.slots,
        oci_runtime=settings.runtime or None,
    )
