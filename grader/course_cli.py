"""`autograder course check`: a course tree goes in; whether its units can be graded by, and why not, comes out.

    loaded (files, patches, ids) -> fixtures made again -> every variant and rendering under the course tests and the
    oracle's cases -> each course test within its time -> the staff suite, graded as a student's

Exit status: 0 all is in order, 1 something is not, 2 usage, 5 the failure is ours. What was proved is written to
renderings/UNIT.sha256 in the tree.
"""

import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import click

from grader import fixtures, local, module_file, plan, proof, sandboxes, scaffold
from grader.cli import EXIT_STATUS
from grader.errors import LoadError, OracleError, Rejected
from grader.grade import About, grade
from grader.intake import take_in
from grader.mutation import CAUGHT
from grader.oracle import OracleProcesses
from grader.proof import Proof
from grader.renderings import SALTS
from grader.report import StudentTestPart, Verdict
from grader.submission import Upload
from grader.unit import Unit
from grader.units import DEFAULT_COURSE, load_course
from sandbox.errors import SandboxError
from sandbox.records import RunResult, Sandbox

SECONDS = 3600.0


@click.group()
def course() -> None:
    """Look after a course tree."""


@course.command()
@click.argument("unit_ids", metavar="[UNIT]...", nargs=-1)
@click.option("--course", "root", type=click.Path(path_type=Path), default=DEFAULT_COURSE, help="Another course tree.")
@click.option("--sandbox", "kind", type=click.Choice(["docker", "process"]), default="docker", show_default=True)
@click.option("--jobs", type=click.IntRange(1, 16), default=2, show_default=True, help="Runs made at the same time.")
def check(unit_ids: tuple[str, ...], root: Path, kind: str, jobs: int) -> None:
    """Check units, all if none is named, and prove that every rendering of their variants behaves as it should."""
    try:
        found = load_course(root)
    except OSError as error:
        raise click.UsageError(str(error)) from error
    wanted = unit_ids or tuple(sorted({*found.units, *(problem.unit for problem in found.problems)}))
    refused = [f"{each.file}:{each.line}: {each.reason}" for each in found.problems if each.unit in wanted]
    known = {*found.units, *(each.id for each in found.listed)}
    refused += [f"{each}: the course has no such unit." for each in wanted if each not in known and not refused]
    for text in refused:
        click.echo(text)
    for each in found.listed:
        click.echo(f"{each.id}, {each.title}: {each.reason}")
    units = [found.units[each] for each in wanted if each in found.units]
    good = not refused
    try:
        with sandboxes.opened(kind, jobs) as sandbox:
            for unit in units:
                good = _check(unit, root, sandbox) and good
    except SandboxError as error:
        click.echo(f"The sandbox failed, nothing is known: {error}", err=True)
        sys.exit(EXIT_STATUS[Verdict.GRADER_ERROR])
    sys.exit(0 if good else 1)


@course.command()
@click.argument("unit_id", metavar="UNIT")
@click.option("--title", help="As it is shown to students.  [default: Unit UNIT]")
@click.option("--file", "path", help="What students write.  [default: python/tinyllm/unit_UNIT.py]")
@click.option(
    "--course", "root", type=click.Path(path_type=Path), default=DEFAULT_COURSE, help="The tree, made if missing."
)
def new(unit_id: str, title: str | None, path: str | None, root: Path) -> None:
    """Write a small whole unit to begin with: module file, contract, reference, course tests, mutants, wheat."""
    title = f"Unit {unit_id}" if title is None else title
    path = scaffold.file_of(unit_id) if path is None else path
    if not title.isprintable() or not title.strip():
        raise click.UsageError("The title must be one line of text.")
    laid = scaffold.scaffold(unit_id, title.strip(), path)
    try:
        module_file.read(f"modules/{unit_id}.toml", laid[f"modules/{unit_id}.toml"].encode())
    except LoadError as error:
        raise click.UsageError(error.reason) from error
    taken = [file for file in laid if (root / file).exists()]
    if taken:
        raise click.UsageError(f"Nothing was written, because there is {', '.join(taken)} already.")
    for file, text in laid.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text, encoding="utf-8")
        click.echo(root / file)
    click.echo(f"Next: autograder course check {unit_id} --course {root}")


def _check(unit: Unit, root: Path, sandbox: Sandbox) -> bool:
    live = None if unit.oracle is None else unit.oracle.source
    count = len(proof.variants_of(unit)) * (1 + len(SALTS))
    with (
        sandbox.session(plan.preload(unit), SECONDS, unit.runtime) as session,
        click.progressbar(length=count, label=unit.id, file=sys.stderr) as bar,
    ):

        def step(result: RunResult) -> None:
            bar.update(1)

        proofs = proof.prove(unit, session, live, step)
        slow = proof.slow_tests(unit, session)
    staff = graded_staff(unit, root, sandbox)
    click.echo(table(proofs, staff.statuses))
    wrong = [
        *fixtures.problems(unit, root),
        *proof.problems(unit, proofs, with_oracle=live is not None),
        *slow,
        *staff.problems,
    ]
    for text in wrong:
        click.echo(f"{unit.id}: {text}")
    if wrong:
        return False
    kept = root / "renderings" / f"{unit.id}.sha256"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(proof.digests(unit), encoding="utf-8")
    click.echo(f"{unit.id}: {len(proofs)} variants in order, {len(proofs) * len(SALTS)} renderings proved: {kept}")
    return True


@dataclass(frozen=True)
class Staff:
    """What became of the course's own example of a suite: how each mutant ended, and what is wrong."""

    problems: tuple[str, ...]
    statuses: Mapping[str, str] = field(default_factory=dict)


def table(proofs: Sequence[Proof], staff: Mapping[str, str]) -> str:
    """A line for each variant."""
    lines = ["variant                 texts  codes  proved  staff suite  course tests that fail"]
    for each in proofs:
        name, proved = each.variant.id, len(SALTS) - len(each.differing)
        failing = ", ".join(sorted(each.behaviour.failing)) or "-"
        lines.append(f"{name:22}  {each.texts:5}  {each.codes:5}  {proved:6}  {staff.get(name, '-'):11}  {failing}")
    return "\n".join(lines)


def graded_staff(unit: Unit, root: Path, sandbox: Sandbox) -> Staff:
    """Grade the staff suite with the reference, as a student's: it accepts correct code, keeps its time, and kills
    every mutant."""
    own = f"ref/learner-tests/{unit.id}"
    places = (f"{own}/{unit.tests_path}", own, f"ref/{unit.tests_path}")
    suite = next((root / place for place in places if (root / place).is_dir()), None)
    if suite is None:
        return Staff((f"staff suite: there is none in {places[0]}.",))
    files = {file.stem: Upload(f"{file.stem}.py", file.reference) for file in unit.files}
    try:
        submission = take_in(unit, files, local.read_paths([suite]))
    except Rejected as refusal:
        return Staff((f"staff suite: {refusal.path}: {refusal.message}",))
    about = About(id=uuid.uuid4().hex, course="local", student=None, received_at=datetime.now(UTC))
    try:
        with OracleProcesses() as oracle:
            report = grade(unit, submission, sandbox=sandbox, oracle=oracle, seed=0, about=about)
    except OracleError as error:
        return Staff((f"oracle/{unit.id}/live.py: {error}.",))
    tests = report.student_tests.tests if report.student_tests is not None else ()
    statuses = {each.id: each.status for each in report.mutation.mutants} if report.mutation is not None else {}
    bad = [f"staff suite: {test.id} rejects correct code{_said_by(test)}." for test in tests if test.valid is False]
    for reason in report.reasons if report.verdict is not Verdict.PASS else ():
        if reason.code == "oracle_disagrees":
            bad.append(f"oracle/{unit.id}/live.py: it contradicts the reference. {reason.message}")
        elif reason.code != "course_tests":  # that is said of every test apart
            bad.append(f"staff suite: {reason.message}")
    bad += [f"staff suite: {mid} ends as {status.value}." for mid, status in statuses.items() if status not in CAUGHT]
    return Staff(tuple(bad), {mid: status.value for mid, status in statuses.items()})


def _said_by(test: StudentTestPart) -> str:
    told = test.cause.message if test.cause is not None else test.rejection
    return f": {' '.join(told.split()).rstrip('.')}" if told else ""
