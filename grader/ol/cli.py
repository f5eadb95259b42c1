"""`ol`: words of a student's command line go in; work is begun, tried here, handed in, and what came of it is printed.

Exit status: 0 pass, 1 fail, 2 usage, 3 another unit is to be built first, 4 the contract is not kept, 5 the failure is
ours, 6 what was sent cannot be taken in, 7 not started.
"""

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from pydantic import ValidationError

from grader import deps, diffs
from grader.errors import Rejected
from grader.grade import UNREADABLE
from grader.grade import Progress as Done
from grader.ol import account as accounts
from grader.ol import places, service, stubs, trials
from grader.ol.account import Account
from grader.ol.places import Places
from grader.ol.screen import PHASES, Screen, safe
from grader.ol.stops import Blocked, Drift, Failed, NotStarted, Ours, Refused, Stop, Usage
from grader.quiz import Choices, Mark, Question, Quiz, Shapes, points
from grader.quiz import grade as grade_quiz
from grader.report import Outcome, Report, Verdict
from grader.submission import Submission, Upload
from grader.unit import CourseTest, Dep, Unit
from grader.wording import shown
from sandbox.errors import SandboxError

GRADED = (Verdict.PASS, Verdict.FAIL)  # what is said of the work, and stays true of the same files
LOOPBACK = ("localhost", "127.0.0.1", "::1")
SHAPE_HINT = "(a shape, such as (2, 3) or 2x3)"
CHOICE_HINT = "(the id of one of these)"

HELP = """ol, the student's command: begin a unit, try it on this machine, hand it in.

Exit status: 0 pass, 1 fail, 2 a wrong call, 3 another unit is to be built first, 4 the contract is not kept, 5 the
failure is ours, 6 what was sent cannot be taken in, 7 not started.
"""

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=HELP)

UnitId = Annotated[str, typer.Argument(metavar="UNIT", help="Such as L5.3.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")]
Tree = Annotated[Path | None, typer.Option("--course", envvar="OL_COURSE", help="Another course tree.")]
RefDeps = Annotated[
    str,
    typer.Option(
        "--ref-deps",
        metavar="[all|ID,...]",
        help="Take the reference for units you have not built: all of them, or those named.",
    ),
]


class Where(StrEnum):
    """Where a whole grading is made."""

    SERVER = "server"
    LOCAL = "local"


@app.command()
def start(unit_id: UnitId, course: Tree = None, as_json: AsJson = False) -> None:
    """Lay the file to begin with, from the contract; never over work that is there."""
    screen, here = Screen(as_json=as_json), _here(course)
    unit = here.unit(unit_id)
    laid, kept = [], []
    for file in unit.files:
        path = here.file(file)
        if path.exists():
            kept.append(file.path)
            continue
        here.check_inside(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(stubs.stub(unit.contract[file.module].source, f"{unit.id}: {unit.title}"), encoding="utf-8")
        laid.append(file.path)
    here.check_inside(here.tests(unit))
    here.tests(unit).mkdir(parents=True, exist_ok=True)
    for each in laid:
        screen.say(f"Laid {each}: fill it in.", "green")
    for each in kept:
        screen.say(f"Kept {each}: there is work in it already.")
    screen.say(f"Your tests: {unit.tests_path}/test_*.py" + (f" (rung {unit.rung})" if unit.rung else ""))
    for note in unit.errata:
        screen.say(f"Erratum: {note.note}")
    lacking = [dep.id for dep in unit.deps if dep.offered and not _built_here(here, unit, dep)]
    if lacking:
        screen.say(
            f"It builds on {', '.join(lacking)}, which you have not built: build that first, or add --ref-deps to "
            "ol tests, check, mutate or submit to take the reference for it."
        )
    screen.say(f"Next: ol tests {unit.id} shows what your code has to do.")
    screen.tell(
        {
            "unit": unit.id,
            "laid": laid,
            "kept": kept,
            "tests_path": unit.tests_path,
            "rung": unit.rung,
            "not_built": lacking,
            "errata": [{"printed": each.printed, "correct": each.correct, "note": each.note} for each in unit.errata],
        }
    )


@app.command()
def tests(
    unit_id: UnitId,
    course: Tree = None,
    ref_deps: RefDeps = deps.NONE,
    expression: Annotated[str, typer.Option("-k", help="Only tests whose name holds this.")] = "",
    stop: Annotated[bool, typer.Option("-x", help="Stop at the first that fails.")] = False,
    kind: Annotated[str, typer.Option("--kind", help="Only tests of this kind, such as golden.")] = "",
    only_list: Annotated[bool, typer.Option("--list", help="Show them without running them.")] = False,
    as_json: AsJson = False,
) -> None:
    """The course tests: what each checks and why, and what they say of your code."""
    screen, here = Screen(as_json=as_json), _here(course)
    unit = here.unit(unit_id)
    wanted = _wanted(unit, expression, kind)
    started = all(here.file(file).is_file() for file in unit.files)
    if only_list or not started:
        _list(screen, unit, wanted)
        if not started and not only_list:
            screen.note(f"There is nothing to run them on yet. Begin with: ol start {unit.id}")
            raise NotStarted("")
        return
    submission = places.submission(here, unit, with_tests=False)
    _check_deps(here, unit, submission, ref_deps)
    _keep_to_contract(screen, unit, submission)
    found = trials.course_tests(unit, submission, wanted, screen.course_test, stop_at_first_failure=stop)
    passed = sum(part.outcome is Outcome.PASSED for part in found)
    left = f" {len(wanted) - len(found)} more not run." if len(found) < len(wanted) else ""
    screen.say(f"{passed} of {len(found)} course tests pass.{left}", "bold")
    screen.tell({"unit": unit.id, "passed": passed, "tests": [part.model_dump(mode="json") for part in found]})
    if passed < len(found):
        raise Failed("")


@app.command()
def check(unit_id: UnitId, course: Tree = None, ref_deps: RefDeps = deps.NONE, as_json: AsJson = False) -> None:
    """Contract, course tests, and the grade of your own tests, on this machine."""
    screen, here = Screen(as_json=as_json), _here(course)
    unit = here.unit(unit_id)
    submission = places.submission(here, unit)
    _check_deps(here, unit, submission, ref_deps)
    _keep_to_contract(screen, unit, submission)
    report = _graded_here(screen, unit, submission)
    screen.report(report)
    _end(screen, report.verdict)


@app.command()
def mutate(
    unit_id: UnitId,
    course: Tree = None,
    ref_deps: RefDeps = deps.NONE,
    where: Annotated[Where | None, typer.Option("--where", help="Default: the server, if you are logged in.")] = None,
    as_json: AsJson = False,
) -> None:
    """The whole grade of your tests; asked once for the same test files."""
    screen, here = Screen(as_json=as_json), _here(course)
    unit = here.unit(unit_id)
    submission = places.submission(here, unit)
    logged_in = accounts.load()
    if (where or (Where.SERVER if logged_in else Where.LOCAL)) is Where.SERVER:
        _hand_in(screen, here, unit, submission, ref_deps)
        return
    _check_deps(here, unit, submission, ref_deps)
    kept = _kept(here, unit, submission)
    report = _known(kept)
    if report is not None:
        screen.note("Nothing has changed since this was graded.")
    else:
        report = _graded_here(screen, unit, submission)
        if report.verdict in GRADED:
            _keep(kept, report.to_json())
    screen.report(report)
    if report.verdict not in GRADED:
        _end(screen, report.verdict)
    _end(screen, Verdict.PASS if report.mutation is not None and report.mutation.passed else Verdict.FAIL)


@app.command()
def submit(unit_id: UnitId, course: Tree = None, ref_deps: RefDeps = deps.NONE, as_json: AsJson = False) -> None:
    """Hand in, follow the grading, and print its report."""
    screen, here = Screen(as_json=as_json), _here(course)
    unit = here.unit(unit_id)
    _hand_in(screen, here, unit, places.submission(here, unit), ref_deps)


@app.command()
def diff(unit_id: UnitId, course: Tree = None, as_json: AsJson = False) -> None:
    """Your code beside the reference, once you have passed."""
    screen, here = Screen(as_json=as_json), _here(course)
    unit = here.unit(unit_id)
    submission = places.submission(here, unit)
    kept = _kept(here, unit, submission)
    known = _known(kept)
    if known is None or known.verdict is not Verdict.PASS:
        report = _graded_here(screen, unit, submission)
        if report.verdict is not Verdict.PASS:
            raise Failed(f"The reference is shown once you have passed. {report.next_step}")
        _keep(kept, report.to_json())
    lines = diffs.to_reference(unit, submission.files).splitlines()
    for line in lines:
        screen.say(line, {"+": "green", "-": "red"}.get(line[:1], ""))
    screen.tell({"unit": unit.id, "diff": lines})


@app.command()
def status(
    unit_id: Annotated[str, typer.Argument(metavar="[UNIT]", help="Only this unit.")] = "",
    course: Tree = None,
    as_json: AsJson = False,
) -> None:
    """What is started here, and what the service has of yours."""
    screen, here = Screen(as_json=as_json), _here(course)
    units = [here.unit(unit_id)] if unit_id else list(here.course().units.values())
    rows = [_standing(here, unit) for unit in units]
    logged_in = accounts.load()
    unanswered: Ours | None = None
    if logged_in is not None:
        try:
            _ask_standing(logged_in, rows)
        except Ours as error:
            unanswered = error  # what is here can be told all the same
    cells = []
    for row in rows:
        left = row.get("attempts_left", "")
        graded = row.get("verdict") or ""
        if row.get("final_score") is not None:
            graded += f" {100 * row['final_score']:.0f} %"
        left = "any" if left is None else str(left)
        cells.append((row["unit"], row["title"], row["code"], str(row["tests"]), graded.strip(), left))
    screen.table(("Unit", "Title", "Code", "Tests", "Handed in", "Attempts left"), cells)
    if logged_in is None:
        screen.say("You are not logged in: ol login")
    if unanswered is not None:
        raise unanswered
    screen.tell({"units": rows, "server": logged_in.server if logged_in else None})


def _ask_standing(logged_in: Account, rows: Sequence[dict[str, Any]]) -> None:
    """Add to each unit what the service has of it."""
    query = {"course": logged_in.course} if logged_in.course else {}
    with service.opened(logged_in) as client:
        for row in rows:
            unit = service.read(service.ask(client, "GET", f"/v1/units/{row['unit']}", params=query), service.Offered)
            row["attempts_left"] = unit.attempts_left
        try:
            graded = service.read(service.ask(client, "GET", "/v1/grades", params=query), service.Grades)
        except Refused:  # a token that is no student's has none
            return
    by_unit = {grade.unit: grade for grade in graded.grades}
    for row in rows:
        if grade := by_unit.get(row["unit"]):
            row["verdict"] = grade.verdict.value if grade.verdict is not None else None
            row["final_score"] = grade.final_score


@app.command()
def quiz(
    unit_id: UnitId,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--answer",
            metavar="QUESTION=TEXT",
            help="Instead of being asked; repeatable. QUESTION.PART=TEXT where a question asks for several shapes.",
        ),
    ] = None,
    course: Tree = None,
    as_json: AsJson = False,
) -> None:
    """The unit's questions: marked here, and kept for your teacher if you are logged in.

    A shape is written as (2, 3), 2x3 or 2 3, a choice as its id or its text. What is left empty counts as not answered.
    """
    screen, here = Screen(as_json=as_json), _here(course)
    unit = here.unit(unit_id)
    if unit.quiz is None:
        raise Usage(f"Unit {unit.id} has no questions.")
    answers = _given(unit.quiz, given) if given else _asked(unit.quiz)
    results = grade_quiz(unit.quiz, answers)
    logged_in = accounts.load()
    if logged_in is not None:
        body = {"answers": answers, **({"course": logged_in.course} if logged_in.course else {})}
        with service.opened(logged_in) as client:
            service.ask(client, "POST", f"/v1/units/{unit.id}/quiz", json=body)
    for result in results:
        style = {Mark.RIGHT: "green", Mark.WRONG: "red"}.get(result.mark, "")
        screen.say(f"{result.id}: {result.mark.value}", style)
        screen.say(f"     {result.message}")
    right, told = points(results)
    screen.say(f"{right} of {told} right." + (" Kept for your teacher." if logged_in else ""), "bold")
    screen.tell({"unit": unit.id, "right": right, "of": told, "answers": [asdict(result) for result in results]})
    if right < told:
        raise Failed("")


def _given(quiz: Quiz, pairs: Sequence[str]) -> dict[str, Any]:
    """Answers by question from QUESTION=TEXT, or QUESTION.PART=TEXT for one shape of several."""
    places = {place: (question.id, part) for question in quiz.questions for place, part in _places(question)}
    answers: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or name not in places:
            raise Usage(f"--answer wants QUESTION=TEXT, and there are {', '.join(places)}.")
        question, part = places[name]
        if part:
            answers.setdefault(question, {})[part] = text
        else:
            answers[question] = text
    return answers


def _places(question: Question) -> list[tuple[str, str]]:
    """What `--answer` calls each text that a question asks for, and the part it is, if it is one of several."""
    if isinstance(question, Shapes) and len(question.parts) > 1:
        return [(f"{question.id}.{part.name}", part.name) for part in question.parts]
    return [(question.id, "")]


def _asked(quiz: Quiz) -> dict[str, Any]:
    """Answers as they are typed; those that are left empty are not given."""
    answers: dict[str, Any] = {}
    for question in quiz.questions:
        typer.echo(safe(question.text), err=True)
        if isinstance(question, Shapes):
            typer.echo(f"  {SHAPE_HINT}", err=True)
        if isinstance(question, Shapes) and len(question.parts) > 1:
            answers[question.id] = {part.name: _typed(part.name) for part in question.parts}
            continue
        if isinstance(question, Choices):
            typer.echo(f"  {CHOICE_HINT}", err=True)
            for choice in question.choices:
                typer.echo(safe(f"  {choice.id}: {choice.text}"), err=True)
        answers[question.id] = _typed(question.id)
    return answers


def _typed(name: str) -> str:
    try:
        return str(typer.prompt(safe(name), default="", show_default=False, err=True))
    except typer.Abort as error:
        if sys.stdin.isatty():
            raise
        typer.echo(err=True)  # the question has no end of line
        raise Usage("There is no terminal to ask on: answer with --answer QUESTION=TEXT.") from error


@app.command()
def login(
    server: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="Of the service, as in https://grader.example.")
    ] = "",
    course_id: Annotated[str, typer.Option("--course-id", help="The course offering you hand in to.")] = "",
    forget: Annotated[bool, typer.Option("--forget", help="Log out of this machine.")] = False,
    as_json: AsJson = False,
) -> None:
    """Keep the service's address and your token, readable by you alone. The token is asked for, or read from a pipe."""
    screen = Screen(as_json=as_json)
    if forget:
        forgotten = accounts.forget()
        screen.say("Forgotten." if forgotten else "You were not logged in.")
        screen.tell({"forgotten": forgotten})
        return
    try:
        address = urlsplit(server)
    except ValueError as error:
        raise Usage(f"{shown(server)} is no address: {error}.") from error
    if address.scheme not in ("http", "https") or not address.hostname:
        raise Usage("Give the service's address, as in: ol login https://grader.example")
    if address.scheme == "http" and address.hostname not in LOOPBACK:
        raise Usage("Over http everybody on the way could read your token: give an address with https.")
    token = typer.prompt("Token", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline()
    found = Account(server, token.strip(), course_id)
    if not found.token or not found.token.isprintable():
        raise Usage("That is no token. It was shown once, by the course staff or on your tokens page.")
    with service.opened(found) as client:
        offer = service.read(service.ask(client, "GET", "/v1/units"), service.Offer)
        for unit in offer.units[:1]:  # what is asked of a unit tells a token that counts from one that does not
            service.ask(client, "GET", service.linked(client, unit.links.here))
    kept = accounts.save(found)
    screen.say(f"Logged in to {server}; kept in {kept}.", "green")
    screen.tell({"server": server, "course": course_id, "kept": str(kept)})


def _here(tree: Path | None) -> Places:
    return places.find(Path.cwd(), tree)


def _wanted(unit: Unit, expression: str, kind: str) -> list[CourseTest]:
    kinds = sorted({test.kind for test in unit.course_tests})
    if kind and kind not in kinds:
        raise Usage(f"There is no kind {shown(kind)}. Kinds: {', '.join(kinds)}.")
    found = [test for test in unit.course_tests if expression in test.name and (not kind or test.kind == kind)]
    if not found:
        raise Usage("No course test is meant by that.")
    return found


def _list(screen: Screen, unit: Unit, wanted: Sequence[CourseTest]) -> None:
    for test in wanted:
        screen.say(f"{test.name}  {test.kind}", "bold")
        screen.say(f"     {test.why}")
    screen.tell(
        {
            "unit": unit.id,
            "tests": [
                {"id": test.name, "kind": test.kind, "why": test.why, "chapter": test.chapter} for test in wanted
            ],
        }
    )


def _check_deps(here: Places, unit: Unit, submission: Submission, ref_deps: str) -> None:
    try:
        allowed = deps.ref_deps(ref_deps)
    except ValueError as error:
        raise Usage("--ref-deps is all, or the ids of units with commas between, such as L5.1,L0.4.") from error
    passed = [dep.id for dep in unit.deps if _passed_here(here, dep.id)]
    if lacking := deps.missing(unit, submission, allowed, passed):
        raise Blocked(f"needs {lacking[-1].id}: build it, or pass --ref-deps")


def _keep_to_contract(screen: Screen, unit: Unit, submission: Submission) -> None:
    problems = trials.drift(unit, submission)
    for problem in problems:
        screen.say(f"{problem.file}:{problem.line}: {problem.message}", "red")
    if problems:
        unread = next((problem for problem in problems if problem.code in UNREADABLE), None)
        if unread is None:
            screen.note("Keep to the contract first: every name and parameter as it says.")
        else:
            screen.note(f"Make {unread.file} parse first, line {unread.line}: nothing else of it was looked at.")
        screen.tell({"unit": unit.id, "contract": [vars(problem) for problem in problems]})
        raise Drift("")


def _graded_here(screen: Screen, unit: Unit, submission: Submission) -> Report:
    with screen.progress() as bars:
        tasks: dict[str, Any] = {}

        def show(done: Done) -> None:
            if done.phase not in tasks:
                tasks[done.phase] = bars.add_task(PHASES.get(done.phase, done.phase))
            bars.update(tasks[done.phase], completed=done.done, total=done.total)

        return trials.whole(unit, submission, show)


def _kept(here: Places, unit: Unit, submission: Submission) -> Path:
    """Where the grade of exactly these files, by exactly this unit, is kept."""
    key = hashlib.sha256(f"{unit.digest} {submission.digest}".encode()).hexdigest()[:32]
    kept = here.root / ".ol" / f"{unit.id}-{key}.json"
    here.check_inside(kept)
    return kept


def _known(kept: Path) -> Report | None:
    """The grade that is kept there, if one is that can be read: an older `ol` may have written another form."""
    try:
        return Report.model_validate_json(kept.read_bytes()) if kept.is_file() else None
    except ValidationError:
        return None


def _keep(kept: Path, report: str) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(report, encoding="utf-8")


def _hand_in(screen: Screen, here: Places, unit: Unit, submission: Submission, ref_deps: str) -> None:
    logged_in = accounts.load()
    if logged_in is None:
        raise Usage("You are not logged in to a service: ol login https://...")
    if not places.has_tests(here, unit):
        raise Refused(f"There are no tests in {unit.tests_path} yet.")
    tests = [Upload(file.path, file.data) for file in submission.tests]
    with service.opened(logged_in) as client, screen.progress() as bars:
        standing = service.post(client, logged_in, unit, places.built(here, unit), tests, ref_deps)
        screen.note(f"Handed in: {standing.id}")
        task = bars.add_task("waiting")

        def show(now: service.Standing) -> None:
            if now.status == "queued" and now.position is not None:
                bars.update(task, description=f"waiting, place {now.position}")
            elif (doing := now.progress) is not None and doing.total:
                phase = PHASES.get(doing.phase, doing.phase)
                bars.update(task, description=safe(phase), completed=doing.done, total=doing.total)

        standing = service.follow(client, standing, show)
        if standing.status == "cancelled":
            raise Refused("It was cancelled.")
        report = service.linked(client, standing.links.report)
        answer = service.ask(client, "GET", report)
        verdict = service.read(answer, service.Graded).verdict
        text = service.ask(client, "GET", report, params={"format": "text"}).text
    screen.lines(text)
    if standing.attempts_left is not None:
        screen.say(f"Attempts left: {standing.attempts_left}")
    screen.tell(answer.json())
    if verdict is Verdict.PASS:  # then what builds on it can go on here
        _keep(_kept(here, unit, submission), answer.text)
    _end(screen, verdict)


def _end(screen: Screen, verdict: Verdict) -> None:
    """Leave with the status of the verdict of a report that was printed."""
    if verdict is Verdict.GRADER_ERROR:
        screen.note("The failure is ours: no attempt was used. Try again later.")
        raise Ours("")
    if verdict is Verdict.REJECTED:
        raise Refused("")
    if verdict is not Verdict.PASS:
        raise Failed("")


def _standing(here: Places, unit: Unit) -> dict[str, Any]:
    started = [file for file in unit.files if here.file(file).is_file()]
    tests = len(list(here.tests(unit).rglob("test_*.py"))) if here.tests(unit).is_dir() else 0
    code = "started" if len(started) == len(unit.files) else "begun" if started else "not started"
    code = "passed" if _passed_here(here, unit.id) else code
    return {"unit": unit.id, "title": unit.title, "code": code, "tests": tests}


def _built_here(here: Places, unit: Unit, dep: Dep) -> bool:
    """Whether a unit that this one builds on was built, or passed before."""
    return all(places.has_work(here, file, unit) for file in dep.files) or _passed_here(here, dep.id)


def _passed_here(here: Places, unit_id: str) -> bool:
    """Whether a grade that is kept here says so of any files of the unit."""
    return any(_verdict(kept) == Verdict.PASS.value for kept in (here.root / ".ol").glob(f"{unit_id}-*.json"))


def _verdict(kept: Path) -> object:
    """Of a grade in any form, of an older `ol` too; None where there is none to be read."""
    try:
        return json.loads(kept.read_bytes()).get("verdict")
    except (ValueError, AttributeError):
        return None


def run(words: Sequence[str]) -> int:
    """Run one command line; its exit status."""
    words = ["--ref-deps=all" if word == "--ref-deps" else word for word in words]
    screen = Screen(as_json="--json" in words)
    try:
        app(args=list(words), standalone_mode=True)
    except Stop as stop:
        return _told(screen, str(stop), stop.status)
    except Rejected as refusal:
        message = f"{refusal.path}: {refusal.message}" if refusal.path else refusal.message
        return _told(screen, message, Refused.status)
    except SandboxError as error:
        return _told(screen, f"The failure is not yours: {error}", Ours.status)
    except SystemExit as left:  # as typer ends: by itself 0, by words it does not know 2
        return left.code if isinstance(left.code, int) else 0
    return 0


def _told(screen: Screen, message: str, status: int) -> int:
    """Say why a command ended without an answer, and to programs in its place."""
    if message:
        screen.note(message)
        screen.tell({"error": message, "exit_status": status})
    return status


def main() -> None:
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
