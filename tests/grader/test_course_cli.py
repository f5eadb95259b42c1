"""`autograder course check` proves what can be proved, and says of each fault which it is, and where."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from grader.course_cli import course
from tests.grader.small_course import COURSE_TEST, FILES, MODULE, PATCH, REFERENCE, SUITE, write_course
from tests.grader.small_oracle import LIVE

Changes = dict[str, str | bytes | None]
TESTS = "course/tests/Z1/test_double.py"
STAFF = "course/ref/learner-tests/Z1/python/tests/z1-double/test_double.py"
MANIFEST = "course/mutants/Z1/manifest.tsv"
SCRIPT = "course/oracle/Z1/data.py"
WHEAT = "course/wheats/Z1/w01_other.py"
TOML = "course/modules/Z1.toml"


def checked(root: Path, changes: Changes | None = None, *words: str) -> tuple[Result, Path]:
    tree = write_course(root, changes)
    return CliRunner().invoke(course, ["check", *words, "--course", str(tree), "--sandbox", "process"]), tree


def listed(*rows: str) -> str:
    """The manifest with more mutants: "m01 auto 12"."""
    more = "".join("{}\tZ1\t{}\tscale\t{}\tfalse\tTest more.\t\n".format(*row.split()) for row in rows)
    return FILES[MANIFEST] + more


def test_a_unit_in_order_gets_its_renderings_digests(tmp_path: Path) -> None:
    result, tree = checked(tmp_path, {"course/oracle/Z1/live.py": LIVE})
    assert result.exit_code == 0, result.output
    lines = (tree / "renderings/Z1.sha256").read_text().splitlines()
    assert len(lines) == 3 * 16  # the reference, a wheat and a mutant
    assert lines[0].split()[1:] == ["reference", "0"]
    rows = {line.split()[0]: line.split()[1:] for line in result.output.splitlines() if line.strip()}
    assert rows["reference"][3:] == ["-", "-"]
    assert rows["s01"] == ["16", "16", "16", "killed", "test_twice"]


REFUSED: dict[str, tuple[Changes, str]] = {
    "a module file that is none": ({TOML: "id = 3\n"}, "modules/Z1.toml:1: "),
    "a patch that does not apply": (
        {"course/mutants/Z1/s01.patch": PATCH.replace("@@ -9,7 +9,7", "@@ -8,7 +8,7")},
        "mutants/Z1/s01.patch:4: expected ",
    ),
    "a mutant that is no Python": (
        {"course/mutants/Z1/s01.patch": PATCH.replace("x = x * x +", "x = = x +")},
        "mutants/Z1/s01.patch:0: the mutant is no Python",
    ),
    "a mutant that is the reference": (
        {"course/mutants/Z1/s01.patch": PATCH.replace("x * x + self.offset", "x * self.factor + self.offset  # x")},
        "mutants/Z1/s01.patch:0: the mutant equals the reference",
    ),
    "a mutant without a patch": ({"course/mutants/Z1/s01.patch": None}, "mutants/Z1/manifest.tsv:4: "),
    "a test that claims what is no mutant": (
        {TESTS: COURSE_TEST.replace("CATCHES: s01", "CATCHES: s02")},
        "tests/Z1/test_double.py:0: test_twice catches s02, which the manifest does not list",
    ),
    "a fixture that is not there": ({"course/fixtures/Z1/data.json": None}, "modules/Z1.toml:17: fixtures/Z1/data"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_unit_that_cannot_be_loaded_is_refused_with_file_and_line(name: str, tmp_path: Path) -> None:
    changes, says = REFUSED[name]
    result, tree = checked(tmp_path, changes)
    assert result.exit_code == 1, result.output
    assert result.output.startswith(says)
    assert not (tree / "renderings").exists()


FAULTS: dict[str, tuple[Changes, str]] = {
    "a course test that fails on the reference": (
        {TESTS: COURSE_TEST.replace("(0) == 0", "(0) == 1")},
        "reference: correct code, but course tests fail: test_zero.",
    ),
    "a course test that is skipped on the reference": (
        {TESTS: COURSE_TEST.replace("assert Double()(0) == 0", "pytest.skip('later')")},
        "reference: correct code, but course tests fail: test_zero.",
    ),
    "a wheat that is not correct": (
        {WHEAT: "from tinyllm.demo.base import Base\n\n\nclass Double(Base):\n    def forward(self, x, times=1):\n"
         "        return 3\n"},
        "w01_other: correct code, but course tests fail: test_twice, test_zero.",
    ),
    "a mutant that course tests do not catch": (
        {TESTS: COURSE_TEST.replace('"x", [1, 2]', '"x", [2]')},
        "s01: no course test catches this mutant.",
    ),
    "a test that catches more than it claims": (
        {TESTS: COURSE_TEST.replace("(0) == 0", "(3) == 6").replace("CATCHES:\n", "CATCHES: \n")},
        "s01: CATCHES names it at test_twice; it fails test_twice, test_zero.",
    ),
    "a test that catches less than it claims": (
        {TESTS: COURSE_TEST.replace("CATCHES:\n", "CATCHES: s01\n")},
        "s01: CATCHES names it at test_twice, test_zero; it fails test_twice.",
    ),
    "a mutant that the staff suite does not kill": (
        {STAFF: SUITE.replace("(3) == 6", "(2) == 4")},
        "staff suite: s01 ends as survived.",
    ),
    "two mutants that are the same": (
        {MANIFEST: listed("m01 auto 12"), "course/mutants/Z1/m01.patch": PATCH.replace("x * x", "(x * x)")},
        "m01: is the same as s01.",
    ),
    "a mutant that is a wheat": (
        {MANIFEST: listed("m01 auto 12"), "course/mutants/Z1/m01.patch": PATCH.replace("x * x", "self.factor * x")},
        "m01: is the same as w01_other.",
    ),
    "a staff suite that rejects correct code": (
        {STAFF: SUITE + "\n\ndef test_code():\n    assert not Double()(1)\n"},
        "staff suite: test_double.py::test_code rejects correct code: AssertionError: assert not 2",
    ),
    "no staff suite": ({STAFF: None}, "staff suite: there is none in ref/learner-tests/Z1/python/tests/z1-double."),
    "a staff suite over its budget": (
        {STAFF: f"{SUITE}    while True:\n        pass\n", TOML: MODULE.replace("budget_s = 5", "budget_s = 1")},
        "staff suite: test_double.py::test_doubles rejects correct code: It used up the limit of 1 s of CPU time.",
    ),
    "a course test over its time": (
        {TESTS: COURSE_TEST.replace("(0) == 0", "(0) == 0\n    import time\n    time.sleep(2)"),
         TOML: MODULE.replace("timeout_s = 5", "timeout_s = 1")},
        "test_zero: run by itself on the reference, within timeout_s = 1, it ends as timeout",
    ),
    "course tests over the time of one, together": (
        {TESTS: COURSE_TEST.replace("    assert", "    __import__('time').sleep(0.6)\n    assert"),
         TOML: MODULE.replace("timeout_s = 5", "timeout_s = 1")},
        "all course tests: run together on the reference, within timeout_s = 1, they end as no_progress, so that each "
        "submission has them run one by one.",
    ),
    "a fixture that is made again otherwise": (
        {SCRIPT: FILES[SCRIPT].replace("'{}'", "'[1]'")},
        "fixtures/Z1/data.json: made again it differs: the value.",
    ),
    "a fixture that no script makes": ({SCRIPT: None}, "fixtures/Z1/data.json: no script in oracle/Z1 makes it."),
    "a script that fails": (
        {SCRIPT: "import there_is_no_such_module\n"},
        "fixtures/Z1/data.json: oracle/Z1/data.py ends with status 1: ModuleNotFoundError: No module named "
        "'there_is_no_such_module'.",
    ),
    "a script that writes nothing": (
        {SCRIPT: "print('done')\n"},
        "fixtures/Z1/data.json: oracle/Z1/data.py does not write the file that it is given.",
    ),
    "an oracle that contradicts the reference": (
        {"course/oracle/Z1/live.py": LIVE.replace("return factor * x", "return factor * x + 1")},
        "oracle/Z1/live.py: it contradicts the reference. ",
    ),
    "an oracle that cannot be run": (
        {"course/oracle/Z1/live.py": f"import there_is_no_such_module\n{LIVE}"},
        "oracle/Z1/live.py: ",
    ),
    "a unit whose text decides what it does": (
        {"tinyllm/demo/double.py": f"{REFERENCE}\n\ndef spare():\n    total = 1\n    return total\n",
         TESTS: COURSE_TEST.replace("(0) == 0", "(0) == 0\n    from tinyllm.demo import double\n"
                                    "    assert double.spare.__code__.co_varnames == ('total',)")},
        "reference: renderings ",
    ),
}  # fmt: skip
AT_EVERY_CHANGE = (
    "a staff suite that rejects correct code",
    "a fixture that is made again otherwise",
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in AT_EVERY_CHANGE else [pytest.mark.full]) for name in FAULTS]
)
def test_each_fault_is_said_and_nothing_counts_as_proved(name: str, tmp_path: Path) -> None:
    changes, says = FAULTS[name]
    result, tree = checked(tmp_path, changes)
    assert result.exit_code == 1, result.output
    assert any(line.startswith(f"Z1: {says}") for line in result.output.splitlines()), result.output
    assert not (tree / "renderings").exists()


def test_one_bad_unit_does_not_keep_the_others_from_being_checked(tmp_path: Path) -> None:
    result, tree = checked(tmp_path, {"course/modules/A0.toml": "id ="})
    assert result.exit_code == 1
    assert result.output.startswith("modules/A0.toml:1: ")
    assert (tree / "renderings/Z1.sha256").is_file()


def test_a_unit_that_is_not_there_is_said(tmp_path: Path) -> None:
    result, _ = checked(tmp_path, {}, "Z9")
    assert result.exit_code == 1
    assert "Z9: the course has no such unit." in result.output


def test_a_folder_that_is_no_course_is_a_mistake_of_usage(tmp_path: Path) -> None:
    result = CliRunner().invoke(course, ["check", "--course", str(tmp_path), "--sandbox", "process"])
    assert result.exit_code == 2
    assert "no modules/ folder" in result.output
