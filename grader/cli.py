"""`autograder grade`: files on this machine go in, the report goes to standard output, progress to a terminal.

Exit status: 0 pass, 1 fail, 2 usage, 5 we failed (grader_error), 6 the upload was refused (rejected), 128 and the
signal's number if one ended it.
"""

import os
import signal
import sys
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click

from grader import conclude, deps, local, sandboxes, wording
from grader.errors import OracleError, Rejected
from grader.formats import Format, Material, rendered
from grader.grade import About, Progress, fresh_seed
from grader.grade import grade as grade_submission
from grader.gradescope import MOST_POINTS, POINTS
from grader.intake import take_in
from grader.oracle import OracleProcesses
from grader.report import Report, Verdict
from grader.submission import Upload
from grader.unit import Course, Unit
from grader.units import DEFAULT_COURSE, load_course
from sandbox.errors import SandboxError
from sandbox.kept import kept_in

EXIT_STATUS = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.GRADER_ERROR: 5, Verdict.REJECTED: 6}
CLEAR_LINE = "\r\033[K"


@contextmanager
def _only_verdicts_exit_with_1() -> Iterator[None]:
    """Ends by a signal only once what is open has been closed, containers among it; a bug of ours ends as such."""

    def leave(number: int, frame: object) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except click.ClickException:
        raise
    except Exception:
        traceback.print_exc()
        sys.exit(EXIT_STATUS[Verdict.GRADER_ERROR])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", metavar="UNIT --STEM FILE", nargs=-1, type=click.UNPROCESSED)
@click.option("--file", "files", multiple=True, metavar="STEM=FILE", help="Another way to write --STEM FILE.")
@click.option(
    "--tests",
    "tests",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    help="A folder, a .zip or .tar.gz, or (repeated) single files.",
)
@click.option(
    "--ref-deps",
    "allowed",
    default=deps.ALL,
    show_default=True,
    help="The units whose reference stands in for files you do not send: all, none, or ids with commas between.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Repeat a grading: the seed that its report shows.")
@click.option("--format", "form", type=click.Choice([form.value for form in Format]), default="text", show_default=True)
@click.option(
    "--points", type=click.FloatRange(0, MOST_POINTS), default=POINTS, help="Of a full score, for --format gradescope."
)
@click.option(
    "--course", "course_dir", type=click.Path(path_type=Path), default=DEFAULT_COURSE, help="Another course tree."
)
@click.option(
    "--sandbox",
    "kind",
    type=click.Choice(["docker", "process"]),
    default="docker",
    show_default=True,
    help="'process' grades without isolation: for your own code only.",
)
@click.option("--jobs", type=click.IntRange(1, 16), default=2, show_default=True, help="Runs made at the same time.")
@click.option("--runtime", envvar="AUTOGRADER_RUNTIME", help="What runs the containers, such as runsc (gVisor).")
@_only_verdicts_exit_with_1()
def grade(
    words: tuple[str, ...],
    files: tuple[str, ...],
    tests: tuple[Path, ...],
    allowed: str,
    seed: int | None,
    form: str,
    points: float,
    course_dir: Path,
    kind: str,
    jobs: int,
    runtime: str | None,
) -> None:
    """Grade files of this machine as the service would.

    The files of the unit are given by their names without .py, as in: autograder grade L5.3 --mha mha.py --tests tests
    """
    named, plain = _named(words)
    if not plain:
        raise click.UsageError(wording.UNIT_MISSING)
    unit_id, *further = plain
    course = _course(course_dir)
    unit = _unit(course, unit_id)
    for pair in named:
        if unit.stem_of(stem := pair.partition("=")[0]) not in {*unit.dep_stems, *(file.stem for file in unit.files)}:
            raise click.UsageError(wording.no_such_option(stem))
    about = About(
        id=uuid.uuid4().hex,
        course="local",
        student=None,
        received_at=datetime.now(UTC),
        course_digest=course.digest,
    )
    try:
        uploads = _unit_files(unit, [*files, *named])
        submission = take_in(unit, uploads, local.read_paths(_existing([*tests, *map(Path, further)])))
        deps.check(unit, submission, _ref_deps(allowed))
    except Rejected as refusal:
        message = f"{refusal.path}: {refusal.message}" if refusal.path else refusal.message
        _finish(conclude.rejected(unit.id, about, refusal.code, message), Format(form), Material(unit), points)
    seed = fresh_seed() if seed is None else seed
    with _progress(sys.stderr.isatty()) as progress:
        try:
            with OracleProcesses() as oracle, kept_in(_cache_folder()):
                if unit.oracle is not None:
                    oracle.start(unit.oracle)  # its imports take as long as the container's start
                if kind == "process":
                    click.echo(wording.NOT_ISOLATED, err=True)
                with sandboxes.opened(kind, jobs, runtime) as sandbox:
                    report = grade_submission(
                        unit, submission, sandbox=sandbox, oracle=oracle, seed=seed, about=about, progress=progress
                    )
        except Exception as error:  # whatever it is, it is ours: the submission is a value and raises nothing
            said = (
                str(error)
                if isinstance(error, SandboxError | OracleError)
                else "".join(traceback.format_exception(error))
            )
            click.echo(f"autograder: {said}", err=True)
            report = conclude.failed(unit.id, about, submission.digest, error)
    _finish(report, Format(form), Material(unit, submission.tests), points)


def _named(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Options that name a file of the unit (--mha FILE, --mha=FILE) as STEM=FILE, and the words that belong to no
    option: the unit, and further files behind --tests."""
    pairs: list[str] = []
    plain: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            plain.append(word)
        elif "=" in word:
            pairs.append(word[2:])
        elif rest:
            pairs.append(f"{word[2:]}={rest.pop(0)}")
        else:
            raise click.UsageError(wording.option_wants_file(word))
    return pairs, plain


def _course(course_dir: Path) -> Course:
    try:
        return load_course(course_dir)
    except OSError as error:
        raise click.UsageError(str(error)) from error


def _unit(course: Course, unit_id: str) -> Unit:
    if problems := [f"{each.file}:{each.line}: {each.reason}" for each in course.problems if each.unit == unit_id]:
        raise click.UsageError("\n".join(problems))
    if listed := course.listed_as(unit_id):
        raise click.UsageError(f"{listed.id}, {listed.title}: {listed.reason}")
    if unit_id not in course.units:
        raise click.UsageError(wording.unit_unknown(unit_id, sorted(course.units)))
    return course.units[unit_id]


def _ref_deps(text: str) -> deps.RefDeps:
    try:
        return deps.ref_deps(text)
    except ValueError as error:
        raise click.UsageError(wording.REF_DEPS_INVALID) from error


def _unit_files(unit: Unit, pairs: Sequence[str]) -> dict[str, Upload]:
    uploads: dict[str, Upload] = {}
    for pair in pairs:
        stem, equals, name = pair.partition("=")
        if not equals or not stem or not name:
            raise click.UsageError(wording.pair_malformed(pair))
        stem = unit.stem_of(stem)
        if stem in uploads:
            raise click.UsageError(wording.file_given_twice(stem))
        if Path(name).is_dir():
            raise click.UsageError(wording.path_is_folder(name))
        [uploads[stem]] = local.read_paths(_existing([Path(name)]))
    return uploads


def _existing(paths: Sequence[Path]) -> Sequence[Path]:
    for path in paths:
        try:
            found = path.exists()
        except (OSError, ValueError):  # too long, or holds a NUL
            found = False
        if not found:
            raise click.UsageError(wording.path_missing(str(path)))
    return paths


def _cache_folder() -> Path:
    """Where this user's programs keep what can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "autograder"


@contextmanager
def _progress(shown: bool) -> Iterator[Callable[[Progress], None]]:
    """One line on a terminal that says how far grading is; nothing anywhere else."""

    def show(progress: Progress) -> None:
        if shown:
            phase = progress.phase.replace("_", " ")
            click.echo(f"{CLEAR_LINE}{phase} {progress.done}/{progress.total}", nl=False, err=True)

    try:
        yield show
    finally:
        if shown:
            click.echo(CLEAR_LINE, nl=False, err=True)


def _finish(report: Report, form: Format, material: Material, points: float) -> None:
    click.echo(rendered(report, form, material, points), nl=False)
    sys.exit(EXIT_STATUS[report.verdict])
