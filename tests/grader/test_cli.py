"""The command line, with real runs as processes of this machine."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from grader import cli
from grader.cli import grade
from grader.formats import Format
from tests.grader.small_course import FILES, MODULE, REFERENCE, write_course
from tests.grader.small_oracle import LIVE

SUITE = """\
import pytest

from tinyllm.demo.double import Double


@pytest.mark.parametrize("x", [0, 1, 3])
def test_doubles(x):
    assert Double()(x) == 2 * x
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_course(tmp_path_factory.mktemp("course"))


@pytest.fixture
def sent(tmp_path: Path) -> Path:
    """A folder with double.py and tests/."""
    (tmp_path / "double.py").write_text(REFERENCE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_double.py").write_text(SUITE)
    return tmp_path


def run(course: Path, *words: str | Path) -> Result:
    return CliRunner().invoke(grade, ["--course", str(course), "--sandbox", "process", *map(str, words)])


def test_right_code_and_good_tests_exit_with_0_and_a_json_report(course: Path, sent: Path) -> None:
    result = run(
        course, "Z1", "--double", sent / "double.py", "--tests", sent / "tests", "--format", "json", "--seed", "5"
    )
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert all(len(digest) == 64 for digest in report["integrity"]["digests"].values())
    assert (report["verdict"], report["score"], report["integrity"]["seed"]) == ("pass", 1.0, 5)
    assert report["mutation"]["mutants"][0]["killed_by"] == ["test_double.py::test_doubles"]
    assert "without isolation" in result.stderr


def test_wrong_code_exits_with_1_and_says_what_to_do(course: Path, sent: Path) -> None:
    (sent / "double.py").write_text(REFERENCE.replace("x * self.factor", "x + self.factor"))
    result = run(course, f"--double={sent / 'double.py'}", "Z1", "--tests", sent / "tests" / "test_double.py")
    assert result.exit_code == 1
    assert result.stdout.startswith("Z1: FAIL")
    assert "Next: Make test_twice pass" in result.stdout


def test_what_cannot_be_taken_in_exits_with_6(course: Path, sent: Path) -> None:
    (sent / "double.py").write_bytes(b"x = '\xff'\n")
    result = run(course, "Z1", "--double", sent / "double.py", "--tests", sent / "tests", "--format", "json")
    assert result.exit_code == 6
    report = json.loads(result.stdout)
    assert (report["verdict"], report["score"], report["reasons"][0]["code"]) == ("rejected", None, "not_utf8")


def test_a_failure_of_ours_exits_with_5_and_blames_no_one(course: Path, sent: Path) -> None:
    words = ["Z1", "--double", sent / "double.py", "--tests", sent / "tests", "--format", "json"]
    result = CliRunner().invoke(
        grade, ["--course", str(course), *map(str, words)], env={"DOCKER_HOST": "tcp://127.0.0.1:1"}
    )
    assert result.exit_code == 5
    report = json.loads(result.stdout)
    assert (report["verdict"], report["score"], report["contract"]) == ("grader_error", None, None)


def test_a_refusal_and_a_failure_of_ours_can_be_had_in_every_form(course: Path, sent: Path) -> None:
    files = ["Z1", "--double", str(sent / "double.py"), "--tests", str(sent / "tests")]
    bad = sent / "bad.py"
    bad.write_bytes(b"x = '\xff'\n")
    for form in Format:
        refused = run(course, "Z1", "--double", bad, "--tests", sent / "tests", "--format", form)
        assert (refused.exit_code, "is not UTF-8" in refused.stdout) == (6, True)
        failed = CliRunner().invoke(
            grade,
            ["--course", str(course), *files, "--format", form.value],
            env={"DOCKER_HOST": "tcp://127.0.0.1:1"},
        )
        assert (failed.exit_code, "our side" in failed.stdout) == (5, True)


def test_teachers_read_their_own_sources_and_the_points_they_ask_for(course: Path, sent: Path) -> None:
    words: list[str | Path] = ["Z1", "--double", sent / "double.py", "--tests", sent / "tests", "--seed", "5"]
    document = json.loads(run(course, *words, "--format", "stryker").stdout)
    [file] = document["files"].values()
    assert file["source"] == REFERENCE and all("replacement" in mutant for mutant in file["mutants"])
    assert document["testFiles"]["test_double.py"]["source"] == SUITE
    assert json.loads(run(course, *words, "--format", "gradescope", "--points", "12").stdout)["score"] == 12
    assert run(course, *words, "--format", "junit").stdout.startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "Missing"),
        (["--tests", "."], "Missing argument 'UNIT'"),
        (["Z1"], "Missing option '--tests'"),
        (["Z9", "--tests", "."], "There is no unit Z9. Units: Z1."),
        (["Z1", "--tests", "nowhere"], "There is no file or folder nowhere."),
        (["Z1", "--tests", "x" * 5000], "There is no file or folder xxx"),
        (["Z1", "--tests", ".", "--double", "."], ". is a folder. Name the file itself."),
        (["Z1", "--tests", ".", "--doubel", "x"], "No such option: --doubel"),
        (["Z1", "--tests", ".", "--double"], "--double wants a file."),
        (["Z1", "--tests", ".", "--file", "double"], "--file wants STEM=FILE"),
        (["Z1", "--tests", ".", "--seed", "-1"], "--seed"),
        (["Z1", "--tests", ".", "--format", "xml"], "'json', 'text', 'stryker', 'gradescope', 'junit'"),
        (["Z1", "--tests", ".", "--points", "-1"], "--points"),
    ],
)
def test_mistakes_of_usage_exit_with_2_and_say_which(course: Path, words: list[str], says: str) -> None:
    result = run(course, *words)
    assert result.exit_code == 2
    assert says in result.stderr


def test_a_folder_that_is_no_course_is_a_mistake_of_usage(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        result = run(folder, "Z1", "--tests", ".")
        assert (result.exit_code, "is no course tree" in result.stderr) == (2, True)


def test_a_file_may_have_the_other_name_that_a_unit_gives_it(tmp_path: Path, sent: Path) -> None:
    aliases = 'id = "Z1"\naliases = { "twofold.py" = "python/tinyllm/demo/double.py" }'
    course = write_course(tmp_path / "named", {"course/modules/Z1.toml": MODULE.replace('id = "Z1"', aliases, 1)})
    (sent / "double.py").rename(sent / "twofold.py")
    result = run(course, "Z1", "--twofold", sent / "twofold.py", "--tests", sent / "tests")
    assert result.exit_code == 0, result.output


def test_a_file_given_twice_is_a_mistake_of_usage(course: Path, sent: Path) -> None:
    file = sent / "double.py"
    result = run(course, "Z1", "--double", file, "--file", f"double={file}", "--tests", sent / "tests")
    assert (result.exit_code, "given twice" in result.stderr) == (2, True)


def test_a_unit_that_did_not_load_is_named_with_file_and_line(tmp_path: Path) -> None:
    broken = write_course(
        tmp_path, {"course/modules/Z1.toml": FILES["course/modules/Z1.toml"].replace('id = "Z1"', "id = ")}
    )
    result = run(broken, "Z1", "--tests", ".")
    assert result.exit_code == 2
    assert "modules/Z1.toml:1" in result.stderr


def test_the_same_seed_gives_the_same_report_but_for_id_and_times(course: Path, sent: Path) -> None:
    words = ["Z1", "--double", sent / "double.py", "--tests", sent / "tests", "--format", "json", "--seed", "9"]
    first, second = (without_times(json.loads(run(course, *words).stdout)) for _ in range(2))
    assert first == second


def without_times(value: object) -> object:
    """A report without its id and everything that is measured in time."""
    if isinstance(value, dict):
        gone = ("id", "received_at") if "received_at" in value else ("seconds", "cpu_seconds", "timing")
        return {key: without_times(inner) for key, inner in value.items() if key not in gone}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_grading_is_no_verdict(course: Path, sent: Path, number: int) -> None:
    started = sent / "started"
    (sent / "tests" / "test_double.py").write_text(
        f"import pathlib, time\npathlib.Path({str(started)!r}).touch()\ntime.sleep(600)\n"
    )
    words = [
        "--course",
        course,
        "--sandbox",
        "process",
        "Z1",
        "--double",
        sent / "double.py",
        "--tests",
        sent / "tests",
    ]
    code = "import sys; from grader.cli import grade; grade(sys.argv[1:])"
    with subprocess.Popen([sys.executable, "-c", code, *map(str, words)], stdout=subprocess.PIPE) as process:
        while not started.exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        assert process.communicate()[0] == b""
    assert process.returncode == 128 + number


def test_a_bug_of_ours_is_no_verdict(course: Path, sent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "take_in", lambda *_: 1 / 0)
    result = run(course, "Z1", "--double", sent / "double.py", "--tests", sent / "tests")
    assert (result.exit_code, result.stdout) == (5, "")
    assert "ZeroDivisionError" in result.stderr


def test_a_unit_with_an_oracle_is_driven_and_the_text_says_so(
    sent: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tree = write_course(tmp_path_factory.mktemp("with-oracle"), {"course/oracle/Z1/live.py": LIVE})
    words = ("Z1", "--double", sent / "double.py", "--tests", sent / "tests", "--seed", "5")
    right = run(tree, *words)
    assert "Random cases: 6 of 6 agree" in right.output
    (sent / "double.py").write_text(
        REFERENCE.replace("for _ in", "x = x if isinstance(x, int) else x + 1\n        for _ in")
    )
    wrong = run(tree, *words)
    assert wrong.exit_code == 1
    assert "random cases, although every course test passed" in wrong.output and "With factor" in wrong.output


def test_an_oracle_that_cannot_start_is_our_failure(sent: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    lacking = LIVE.replace("def expected(case):\n", "def expected(case):\n    import nothing_like_it\n")
    tree = write_course(tmp_path_factory.mktemp("lacking"), {"course/oracle/Z1/live.py": lacking})
    result = run(tree, "Z1", "--double", sent / "double.py", "--tests", sent / "tests", "--format", "json")
    assert result.exit_code == 5
    assert "nothing_like_it" in result.stderr and "make setup" in result.stderr
