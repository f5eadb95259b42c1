"""A student works at a unit with nothing but a course tree: each command, and the status it leaves with."""

import io
import json
from pathlib import Path

import pytest

from grader.ol.cli import run
from tests.grader.small_course import FILES, MODULE, REFERENCE, SUITE, write_course
from tests.grader.test_deps import BASE_UNIT

PASS, FAIL, USAGE, BLOCKED, DRIFT, OURS, REJECTED, NOT_STARTED = range(8)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A student's repository, with nobody logged in; commands run from a folder inside it."""
    write_course(tmp_path)
    (tmp_path / "notes").mkdir()
    monkeypatch.chdir(tmp_path / "notes")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("OL_SERVER", "OL_TOKEN", "OL_COURSE", "OL_COURSE_ID"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def work(repository: Path, source: str = REFERENCE, suite: str = SUITE) -> None:
    """Write the student's file and tests."""
    file = repository / "python/tinyllm/demo/double.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)
    tests = repository / "python/tests/z1-double"
    tests.mkdir(parents=True, exist_ok=True)
    (tests / "test_double.py").write_text(suite)


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_start_lays_a_file_that_keeps_to_the_contract_and_fails_its_tests(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["start", "Z1"]) == PASS
    text = said(capsys)
    assert all(part in text for part in ("python/tinyllm/demo/double.py", "python/tests/z1-double", "R1", "a slip"))
    laid = (repository / "python/tinyllm/demo/double.py").read_text()
    assert "class Double(Base)" in laid and "raise NotImplementedError" in laid
    compile(laid, "double.py", "exec")
    assert run(["tests", "Z1"]) == FAIL
    assert "NotImplementedError" in said(capsys)


def test_start_never_lays_over_work(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work(repository)
    assert run(["start", "Z1", "--json"]) == PASS
    assert json.loads(said(capsys))["kept"] == ["python/tinyllm/demo/double.py"]
    assert (repository / "python/tinyllm/demo/double.py").read_text() == REFERENCE


def test_a_unit_is_known_however_its_letters_are_written(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_course(repository, dict(BASE_UNIT))
    work(repository, BASE_UNIT["tinyllm/demo/double.py"])
    for words in (["start", "z1"], ["tests", "z1", "--ref-deps=z0"], ["status", "z1"]):
        assert run([*words, "--json"]) == PASS
        assert "Z1" in said(capsys)
    assert run(["start", "y1"]) == USAGE


def test_what_is_to_be_built_first_is_said_at_the_start(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_course(repository, dict(BASE_UNIT))
    assert run(["start", "Z1"]) == PASS
    text = said(capsys)
    assert "Z0" in text and "--ref-deps" in text
    (repository / "python/tinyllm/demo/base.py").write_text(FILES["tinyllm/demo/base.py"])
    assert run(["start", "Z1"]) == PASS
    assert "--ref-deps" not in said(capsys)


def test_course_tests_can_be_looked_at_before_there_is_code(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["tests", "Z1", "--list", "--json"]) == PASS
    assert [test["id"] for test in json.loads(said(capsys))["tests"]] == ["test_twice", "test_zero"]
    assert run(["tests", "Z1"]) == NOT_STARTED
    assert "twice is what doubling means" in said(capsys)


@pytest.mark.parametrize(
    ("options", "status", "run_tests"),
    [
        ([], FAIL, ["test_twice", "test_zero"]),
        (["-x"], FAIL, ["test_twice"]),
        (["-k", "zero"], PASS, ["test_zero"]),
        (["--kind", "property"], PASS, ["test_zero"]),
        (["-k", "no such"], USAGE, None),
        (["--kind", "golden"], USAGE, None),
    ],
)
def test_course_tests_are_chosen_by_name_and_kind_and_stop_where_that_is_wanted(
    options: list[str],
    status: int,
    run_tests: list[str] | None,
    repository: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    work(repository, REFERENCE.replace("x * self.factor", "x * x"))
    assert run(["tests", "Z1", *options, "--json"]) == status
    text = said(capsys)
    told = json.loads(text)
    assert ([test["id"] for test in told["tests"]] if "tests" in told else None) == run_tests


def test_check_grades_code_and_tests(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work(repository)
    assert run(["check", "Z1", "--json"]) == PASS
    report = json.loads(said(capsys))
    assert (report["verdict"], report["mutation"]["score"], report["course_tests"]["passed"]) == ("pass", 1.0, 2)
    work(repository, suite=SUITE.replace("(3) == 6", "(2) == 4"))
    assert run(["check", "Z1"]) == FAIL
    assert "Test other numbers." in said(capsys)


def test_a_file_that_drifts_from_its_contract_is_said_first(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work(repository, REFERENCE.replace("def halve", "def half"))
    for command in ("tests", "check"):
        assert run([command, "Z1"]) == DRIFT
        told = capsys.readouterr()
        assert "halve" in told.out and "Keep to the contract first" in told.err


def test_a_file_that_does_not_parse_is_to_parse_first(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work(repository, "\ndef broken(:\n")
    assert run(["tests", "Z1"]) == DRIFT
    told = capsys.readouterr().err
    assert "Make python/tinyllm/demo/double.py parse first, line 2" in told and "contract" not in told


def test_what_cannot_be_taken_in_is_refused_as_the_service_would(repository: Path) -> None:
    work(repository)
    (repository / "python/tests/z1-double/numpy.py").write_text("")
    assert run(["check", "Z1"]) == REJECTED


def test_a_grade_is_made_once_for_the_same_files_and_the_reference_is_shown_after_passing(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work(repository, REFERENCE.replace("self.factor * x", "x * self.factor").replace("x / 2", "0.5 * x"))
    assert run(["mutate", "Z1"]) == PASS
    first = said(capsys)
    assert run(["mutate", "Z1"]) == PASS
    again = capsys.readouterr()
    assert again.out == first and "Nothing has changed" in again.err
    for kept in (repository / ".ol").iterdir():
        kept.write_text('{"of": "an older form"}')
    assert run(["mutate", "Z1"]) == PASS
    assert "Nothing has changed" not in capsys.readouterr().err
    assert run(["diff", "Z1"]) == PASS
    shown = said(capsys)
    assert "-    return 0.5 * x" in shown and "+    return x / 2" in shown
    assert run(["status", "--json"]) == PASS
    assert json.loads(said(capsys))["units"][0]["code"] == "passed"


def test_the_reference_stays_hidden_from_who_has_not_passed(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work(repository, REFERENCE.replace("x * self.factor", "x * x"))
    assert run(["diff", "Z1"]) == FAIL
    assert "x * self.factor" not in said(capsys)


def test_a_unit_that_was_not_built_blocks_unless_the_reference_may_stand_in(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_course(repository, dict(BASE_UNIT))
    work(repository, BASE_UNIT["tinyllm/demo/double.py"])
    assert run(["check", "Z1"]) == BLOCKED
    assert "needs Z0: build it, or pass --ref-deps" in capsys.readouterr().err
    for words in (["--ref-deps"], ["--ref-deps=all"], ["--ref-deps=Z0"]):
        assert run(["tests", "Z1", *words]) == PASS
    (repository / "python/tinyllm/demo/base.py").write_text(FILES["tinyllm/demo/base.py"])
    assert run(["tests", "Z1"]) == PASS


def test_a_unit_that_is_only_begun_is_not_built_and_one_that_was_passed_is(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_course(repository, dict(BASE_UNIT))
    work(repository, BASE_UNIT["tinyllm/demo/double.py"])
    assert run(["start", "Z0"]) == PASS
    assert run(["tests", "Z1"]) == BLOCKED
    assert run(["tests", "Z1", "--ref-deps"]) == PASS
    (repository / "python/tinyllm/demo/base.py").unlink()
    (repository / ".ol").mkdir()
    for number, kept in enumerate(("", "[]", '{"verdict": "fail"}')):
        (repository / f".ol/Z0-{number}.json").write_text(kept)
        assert run(["tests", "Z1"]) == BLOCKED
    (repository / ".ol/Z0-9.json").write_text('{"verdict": "pass"}')
    assert run(["tests", "Z1"]) == PASS


EACH_COMMAND: dict[str, tuple[list[str], int, str]] = {
    "a file for no unit": (["start", "Z9"], USAGE, "error"),
    "a file for a unit": (["start", "Z0"], PASS, "laid"),
    "tests without code": (["tests", "Z0"], NOT_STARTED, "tests"),
    "tests that there are": (["tests", "Z1", "--list"], PASS, "tests"),
    "tests of code that drifts": (["tests", "Z1", "--ref-deps"], DRIFT, "contract"),
    "a check without code": (["check", "Z0"], NOT_STARTED, "error"),
    "a check without what is needed": (["check", "Z1"], BLOCKED, "error"),
    "a check of code that drifts": (["check", "Z1", "--ref-deps=Z0"], DRIFT, "contract"),
    "a check with a list that has a hole": (["check", "Z1", "--ref-deps=,"], USAGE, "error"),
    "a grade without what is needed": (["mutate", "Z1", "--where", "local"], BLOCKED, "error"),
    "a grade by a service that is away": (["mutate", "Z1"], OURS, "error"),
    "handing in without code": (["submit", "Z0"], NOT_STARTED, "error"),
    "handing in to a service that is away": (["submit", "Z1"], OURS, "error"),
    "a comparison without code": (["diff", "Z0"], NOT_STARTED, "error"),
    "the standing, of a service that is away": (["status"], OURS, "error"),
    "questions there are none of": (["quiz", "Z1"], USAGE, "error"),
    "an address that is none": (["login", "grader.example"], USAGE, "error"),
    "logging out": (["login", "--forget"], PASS, "forgotten"),
}


@pytest.mark.parametrize("what", EACH_COMMAND)
def test_every_command_has_one_answer_for_programs_and_a_status(
    what: str, repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words, status, key = EACH_COMMAND[what]
    write_course(repository, dict(BASE_UNIT))
    work(repository, REFERENCE.replace("def halve", "def half"))
    monkeypatch.setenv("OL_SERVER", "http://127.0.0.1:9")
    monkeypatch.setenv("OL_TOKEN", "ag_x")
    assert run([*words, "--json"]) == status
    told = capsys.readouterr()
    answer = json.loads(told.out)
    assert key in answer
    if key == "error":
        assert answer["exit_status"] == status
        assert answer["error"] == told.err.strip()
    assert run(words) == status
    assert "{" not in capsys.readouterr().out


def test_what_cannot_be_taken_in_is_said_to_programs_too(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work(repository)
    (repository / "python/tests/z1-double/numpy.py").write_text("")
    assert run(["check", "Z1", "--json"]) == REJECTED
    assert json.loads(said(capsys))["exit_status"] == REJECTED


def test_units_that_cannot_be_worked_on_say_why(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "course/modules/Z2.toml").write_text('id = "Z2"\ntitle = "Later"\noffered = false\n')
    (repository / "course/modules/Z3.toml").write_text(MODULE.replace('id = "Z1"', 'id = "Z3"'))
    for unit, says in (("Z2", "not offered yet"), ("Z3", "mutants/Z3/manifest.tsv"), ("Z9", "This course has: Z1")):
        assert run(["start", unit]) == USAGE
        assert says in capsys.readouterr().err


def test_help_says_first_what_it_is(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == PASS
    _, first, *rest = (line.strip() for line in said(capsys).splitlines() if line.strip())
    assert first.startswith("ol, the student's command")
    assert "7 not started" in " ".join(rest)


def test_words_it_does_not_know_are_a_mistake_of_usage(repository: Path) -> None:
    assert run(["tests"]) == USAGE
    assert run(["fly", "Z1"]) == USAGE
    assert run(["--help"]) == PASS
    assert run(["submit", "Z1"]) == NOT_STARTED
    work(repository)
    assert run(["submit", "Z1"]) == USAGE  # not logged in


def test_without_a_course_tree_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["start", "Z1"]) == USAGE
    assert "--course DIR" in capsys.readouterr().err


QUIZ = """
[[questions]]
id = "shapes"
text = "Which shapes?"
kind = "shapes"
parts = [{ name = "in", answer = [2, 3] }, { name = "out", answer = [6] }]
[[questions]]
id = "why"
text = "Why?"
kind = "text"
"""


def test_questions_are_answered_and_marked(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["quiz", "Z1"]) == USAGE
    (repository / "course/quiz").mkdir()
    (repository / "course/quiz/Z1.toml").write_text(QUIZ)
    capsys.readouterr()
    words = ["quiz", "Z1", "--json", "--answer", "shapes.in=2x3", "--answer", "why=because"]
    assert run([*words, "--answer", "shapes.out=5"]) == FAIL
    assert "6" not in json.loads(said(capsys))["answers"][0]["message"]
    assert run([*words, "--answer", "shapes.out=(6,)"]) == PASS
    assert json.loads(said(capsys))["right"] == 1
    for other in ("other=1", "shapes=2x3", "shapes.side=2x3", "why"):
        capsys.readouterr()
        assert run(["quiz", "Z1", "--answer", "shapes.in=2", "--answer", other]) == USAGE
        assert "there are shapes.in, shapes.out, why" in capsys.readouterr().err


def test_how_an_answer_is_written_is_said_with_the_question(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "course/quiz").mkdir()
    choices = 'choices = [{ id = "a", text = "It stays." }, { id = "b", text = "It grows." }]'
    asked = f'[[questions]]\nid = "count"\ntext = "How many?"\nkind = "choice"\n{choices}\nanswer = "b"\n'
    (repository / "course/quiz/Z1.toml").write_text(QUIZ + asked)
    monkeypatch.setattr("sys.stdin", io.StringIO("2x3\n(6,)\nbecause\nb\n"))
    assert run(["quiz", "Z1"]) == PASS
    told = capsys.readouterr().err
    assert "(2, 3) or 2x3" in told and "the id of one of these" in told


def test_questions_that_nobody_is_there_to_answer_are_a_wrong_call(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "course/quiz").mkdir()
    (repository / "course/quiz/Z1.toml").write_text(QUIZ)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run(["quiz", "Z1"]) == USAGE
    assert "--answer QUESTION=TEXT" in capsys.readouterr().err


def test_course_tests_that_were_not_run_are_counted(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work(repository, REFERENCE.replace("x * self.factor", "x * x"))
    run(["tests", "Z1", "-x"])
    assert "0 of 1 course tests pass. 1 more not run." in said(capsys)


@pytest.mark.parametrize("link", ["python", "python/tinyllm/demo/double.py"])
def test_nothing_is_written_outside_the_repository(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, link: str
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (repository / link).parent.mkdir(parents=True, exist_ok=True)
    (repository / link).symlink_to(outside / "there" if "." in link else outside)
    assert run(["start", "Z1"]) == USAGE
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("link", ["python/tinyllm/demo/double.py", "python/tests/z1-double"])
def test_nothing_outside_the_repository_is_handed_in(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str], link: str
) -> None:
    work(repository)
    (repository / link).rename(outside := tmp_path_factory.mktemp("outside") / "there")
    (repository / link).symlink_to(outside)
    assert run(["check", "Z1"]) == USAGE
    assert "left alone" in capsys.readouterr().err


def test_a_course_tree_controls_no_terminal(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = "\\u001b]0;x\\u0007[red]\\u202e\\u009b2J"
    changes = {"course/modules/Z1.toml": MODULE.replace("Doubling", hostile).replace("a slip", hostile)}
    write_course(repository, dict(changes))
    (repository / "course/quiz").mkdir()
    (repository / "course/quiz/Z1.toml").write_text(QUIZ.replace('text = "', f'text = "{hostile}'))
    work(repository)
    for words in (["start", "Z1"], ["status"], ["status", "--json"], ["quiz", "Z1"]):
        monkeypatch.setattr("sys.stdin", io.StringIO("\n" * 9))
        run(words)
        printed = capsys.readouterr()
        text = printed.out + printed.err
        assert all(each.isprintable() or each == "\n" for each in text), (words, text)
        assert "[red]" in text, words


def test_a_library_that_is_not_installed_is_named_before_anything_runs(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_course(repository, {"course/modules/Z1.toml": MODULE.replace('id = "Z1"', 'id = "Z1"\nruntime = "torch"', 1)})
    work(repository)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for command in ("tests", "check", "mutate"):
        assert run([command, "Z1"]) == USAGE
        assert "pip install torch" in capsys.readouterr().err


def test_what_is_here_is_told_though_the_service_is_away(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OL_SERVER", "http://127.0.0.1:9")
    monkeypatch.setenv("OL_TOKEN", "ag_x")
    assert run(["status"]) == OURS
    printed = capsys.readouterr()
    assert "not started" in printed.out and "does not answer" in printed.err


def test_units_that_cannot_be_loaded_are_named_beside_those_that_can(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "course/modules/Z2.toml").write_text("id =")
    assert run(["start", "Z9"]) == USAGE
    assert "This course has: Z1. Not loaded: Z2." in capsys.readouterr().err
