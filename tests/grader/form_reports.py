"""Reports of every kind, whole and as each role sees them, for the tests of the forms that reports leave in."""

from collections.abc import Iterator

from grader import conclude
from grader.plan import Policy
from grader.report import Report
from grader.unit import Unit
from grader.views import for_role
from sandbox.errors import EngineFailed
from sandbox.records import EndingKind
from tests.grader.simulated import ABOUT, Act, SimulatedSuite, a_unit

ROLES = ("teacher", "admin", "student", "lms")
TESTS = ("test_a", "test_b", "test_c", "test_d")
MUTANTS = ("m1", "m2", "m3", "m4", "m5")


def the_unit(unit: Unit) -> Unit:
    """`unit` with five mutants, of which the last cannot be built."""
    made = a_unit(unit, MUTANTS, wheats=5, required=["m1"])
    *others, last = made.mutants
    [file] = made.files
    broken = type(last)(**{**vars(last), "files": {file.path: b"def ("}})
    return type(made)(**{**vars(made), "mutants": (*others, broken)})


CAUGHT = {"m1": {"test_a": Act.FAIL}, "m2": {"test_b": Act.HANG}, "m3": {"test_c": Act.CRASH}}


def passing(unit: Unit) -> Report:
    acts = {mid: {"test_a": Act.FAIL} for mid in MUTANTS}
    return SimulatedSuite(the_unit(unit), TESTS, acts).grade()


def failing(unit: Unit) -> Report:
    """A mutant of every status; the grade is not void."""
    return SimulatedSuite(the_unit(unit), TESTS, CAUGHT).grade()


def void(unit: Unit) -> Report:
    """As `failing`, but a test rejects correct code."""
    return SimulatedSuite(the_unit(unit), TESTS, {**CAUGHT, "w01": {"test_d": Act.FAIL}}).grade()


def rejected() -> Report:
    return conclude.rejected("Z1", ABOUT, "link", "This is a link.\nSend the file.")


def failed() -> Report:
    return conclude.failed("Z1", ABOUT, "", EngineFailed("gone"))


def all_kinds(unit: Unit) -> Iterator[Report]:
    made = the_unit(unit)
    yield from (passing(unit), failing(unit), void(unit), rejected(), failed())
    yield SimulatedSuite(made, TESTS, CAUGHT).grade(policy=Policy(full_matrix_cpu_seconds=0.0))
    yield SimulatedSuite(made, ()).grade()
    yield SimulatedSuite(made, TESTS, ends_at_import={"reference": EndingKind.SIGNAL}).grade()
    yield SimulatedSuite(made, TESTS, ends_at_import={"m4": EndingKind.DEADLINE}).grade()
    yield SimulatedSuite(made, TESTS, file_errors=frozenset({"m1"})).grade()
    yield SimulatedSuite(made, TESTS, {"course": {"test_twice": Act.HANG}, "own": {"test_a": Act.FAIL}}).grade()
    yield SimulatedSuite(made, TESTS, {"m1": {"test_made": Act.FAIL}}, made_beside=("test_made",)).grade()
    yield SimulatedSuite(made, TESTS, {"broken": dict.fromkeys(TESTS, Act.PASS), **CAUGHT}).grade()


def as_seen(unit: Unit) -> Iterator[Report]:
    """Every kind, as every role sees it."""
    for report in all_kinds(unit):
        for role in ROLES:
            yield for_role(report, role)


EVIL = "\x1b[2J]]></failure>&<script>\x00\r\n\u202e\ud800\uffff \"'"


def hostile(report: Report) -> Report:
    """The report with a text in every place that comes from outside which no format takes as it is."""
    parts = report.model_dump(by_alias=True)

    def spoil(value: object, key: str = "") -> object:
        match value:
            case dict():
                return {name: spoil(inner, name) for name, inner in value.items()}
            case list() | tuple():
                return [spoil(inner, key) for inner in value]
            case str() if key in (
                "message",
                "where",
                "why",
                "chapter",
                "advice",
                "rejection",
                "hint",
                "detail",
                "category",
            ):
                return EVIL
            case str() if key in ("file", "killed_by", "kills") or (key == "id" and "::" in value):
                return f"{EVIL}/{value}"
        return value

    return Report.model_validate(spoil(parts))
