"""Code that was compiled ahead is the code that a run would have compiled."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from sandbox.inside.codes import Codes, Compiled, compile_ahead, in_fork, is_rewritten
from sandbox.records import Run, RunResult, Sandbox

TEST = b"import helper\n\n\ndef test_it():\n    assert helper.VALUE == 3, 'not three'\n"
HELPER = b"VALUE = 3\n"
LOOKS = """
import sys
import helper
def test_was_compiled_ahead():
    rewrite = sys.modules["_pytest.assertion.rewrite"]
    (codes,) = [each.cell_contents for each in rewrite._rewrite_test.__closure__ if hasattr(each.cell_contents, "find")]
    assert codes.find(__file__, open(__file__, "rb").read()) and codes.find(helper.__file__, b"VALUE = 3\\n")
def test_helper():
    assert helper.VALUE == 3
def test_fails():
    assert helper.VALUE == 4
"""


def known(*files: tuple[str, bytes], config: pytest.Config) -> Codes:
    codes = Codes()
    codes.know(compile_ahead(dict(files), (), config), ["/slot/0", "/slot/1"])
    return codes


def test_a_test_file_s_code_is_what_pytest_makes_of_it(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    (tmp_path / "test_it.py").write_bytes(TEST)
    _, wanted = rewrite._rewrite_test(tmp_path / "test_it.py", pytestconfig)
    codes = Codes()
    codes.know(compile_ahead({"test_it.py": TEST}, (), pytestconfig), [str(tmp_path)])
    assert codes.find(str(tmp_path / "test_it.py"), TEST) == wanted


def test_a_helper_s_code_is_what_importlib_makes_of_it(pytestconfig: pytest.Config) -> None:
    found = known(("suite/helper.py", HELPER), config=pytestconfig).find("/slot/1/suite/helper.py", HELPER)
    assert found == compile(HELPER, "/slot/1/suite/helper.py", "exec", dont_inherit=True)
    assert found is not None and found.co_filename == "/slot/1/suite/helper.py"


@pytest.mark.parametrize(
    ("place", "source"), [("/slot/0/test_it.py", TEST + b"\n"), ("/slot/2/test_it.py", TEST), ("test_it.py", TEST)]
)
def test_other_bytes_or_another_place_are_not_known(place: str, source: bytes, pytestconfig: pytest.Config) -> None:
    codes = known(("test_it.py", TEST), config=pytestconfig)
    assert codes.find("/slot/0/test_it.py", TEST) and codes.find(place, source) is None


@pytest.mark.parametrize("source", [b"def f(:", b"\0", b"x = '\\d'\n", b"assert (1, 'always')\n", b"(" * 500])
def test_what_cannot_be_compiled_in_silence_is_left_to_the_run(source: bytes, pytestconfig: pytest.Config) -> None:
    codes = known(("test_odd.py", source), ("test_it.py", TEST), config=pytestconfig)
    assert codes.find("/slot/0/test_odd.py", source) is None and codes.find("/slot/0/test_it.py", TEST)


def test_pytest_rewrites_tests_and_conftests_only() -> None:
    assert all(map(is_rewritten, ("test_a.py", "a_test.py", "conftest.py")))
    assert not any(map(is_rewritten, ("a.py", "testing.py", "test_a.txt")))


@pytest.mark.parametrize(("work", "wanted"), [(lambda: b"x" * 200_000, b"x" * 200_000), (lambda: bytes(1 // 0), b"")])
def test_a_fork_answers_whole_or_not_at_all(work: Callable[[], bytes], wanted: bytes) -> None:
    with open(in_fork(work), "rb") as answer:
        assert answer.read() == wanted


def test_of_an_inert_suite_imports_that_wait_are_apart(pytestconfig: pytest.Config) -> None:
    source = b"import helper\nimport unit\n\n\ndef test_it():\n    assert unit.VALUE == helper.VALUE\n"
    files = {"suite/test_it.py": source, "suite/helper.py": HELPER}
    made = Compiled.from_bytes(compile_ahead(files, ["suite"], pytestconfig).to_bytes())
    assert made.early is not None and made.late is not None
    early, late = made.early["suite/test_it.py"], made.late["suite/test_it.py"]
    assert "helper" in early.co_names and "test_it" in early.co_names and "unit" not in early.co_names
    assert late.co_names == ("unit",) and list(made.late) == ["suite/test_it.py"]
    [function] = [each for each in early.co_consts if hasattr(each, "co_firstlineno")]
    assert function.co_firstlineno == 5


@pytest.mark.parametrize("odd", [b"VALUE = open(__file__)\n", b"VALUE = '\\d'\n", b"VALUE = (\n"])
def test_a_suite_with_one_file_that_does_more_is_compiled_only(odd: bytes, pytestconfig: pytest.Config) -> None:
    made = compile_ahead({"suite/test_it.py": TEST, "suite/helper.py": odd}, ["suite"], pytestconfig)
    assert made.early is None and "suite/test_it.py" in made.whole


def test_early_code_is_found_only_while_a_suite_is_collected(pytestconfig: pytest.Config) -> None:
    made = compile_ahead({"test_it.py": b"import unit\n"}, (), pytestconfig)
    codes = Codes()
    codes.know(made, ["/slot/0"])
    with codes.early(made, "/slot/0"):
        inside = codes.find("/slot/0/test_it.py", b"import unit\n")
    outside = codes.find("/slot/0/test_it.py", b"import unit\n")
    assert inside is not None and "unit" not in inside.co_names
    assert outside is not None and "unit" in outside.co_names


ABANDONED = """
import os
from sandbox.inside.codes import in_fork
answer = in_fork(lambda: b"x" * (1 << 20))  # more than a pipe holds
os.read(answer, 1)
os.close(answer)
os.wait()
"""


def test_a_fork_whose_result_nobody_reads_any_more_ends() -> None:
    subprocess.run([sys.executable, "-c", ABANDONED], check=True, timeout=60)


def test_runs_find_what_was_compiled_ahead_and_end_as_they_would(sandbox: Sandbox, run_of: Callable[..., Run]) -> None:
    run = run_of(LOOKS, files={"helper.py": HELPER.decode()})
    with sandbox.session() as session:
        [before] = session.run([run])
        session.prepare([run.suite.folder])
        [after] = session.run([run])
    assert failed(before) == ["test_was_compiled_ahead", "test_fails"]
    assert failed(after) == ["test_fails"]
    assert [item.where for item in after.record.items][-1] == [item.where for item in before.record.items][-1]


def failed(result: RunResult) -> list[str]:
    assert result.complete
    return [item.id.partition("::")[2] for item in result.record.items if item.outcome == "failed"]


def test_a_file_that_changed_since_is_compiled_anew(sandbox: Sandbox, run_of: Callable[..., Run]) -> None:
    with sandbox.session() as session:
        session.prepare([run_of(TEST.decode(), files={"helper.py": HELPER.decode()}).suite.folder])
        results = session.run([run_of(TEST.decode(), files={"helper.py": f"VALUE = {n}\n"}) for n in (3, 4, 3)])
    assert [failed(result) for result in results] == [[], ["test_it"], []]


def test_what_exhausts_the_compiler_costs_the_session_nothing(sandbox: Sandbox, run_of: Callable[..., Run]) -> None:
    with sandbox.session() as session:
        session.prepare([run_of("x = " + "-" * 100_000 + "1\n").suite.folder])
        [result] = session.run([run_of("def test_it(): pass\n")])
    assert result.complete
