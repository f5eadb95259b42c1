"""What a run's package holds."""

import marshal
import platform

import pytest

from sandbox.package import code_of, package_of, package_of_suites, reads_our_code
from sandbox.records import File, Module, Run, Suite
from sandbox.wire import decode

OURS = platform.python_version()
SECRET = b"def f():\n    return 'secret'  # how it is done\n"


def run_with(*modules: Module) -> Run:
    return Run("run", Suite((File("suite/test_it.py", b""),)), modules)


def test_a_module_that_may_not_be_seen_goes_as_code_on_one_line() -> None:
    run = run_with(Module("unit", SECRET, "unit.py"))
    header, body = decode(package_of(run, OURS))
    assert b"how it is done" not in body
    code = marshal.loads(body)
    assert {line for *_, line in code.co_lines()} <= {0, 1} and code.co_filename == "unit.py"
    [[name, filename, visible, is_code, size]] = header["modules"]
    assert (name, filename, visible, is_code, size) == ("unit", "unit.py", False, True, len(body))


def test_the_files_of_a_suite_that_is_ready_do_not_go_with_its_runs() -> None:
    run = Run("run", Suite((File("suite/test_it.py", b"pass"), File("data.bin", b"data"))), (Module("m", b"", "m.py"),))
    header, body = decode(package_of(run, files_are_there=False))
    assert header["files"] == [["suite/test_it.py", 4], ["data.bin", 4]] and body == b"passdata"
    header, body = decode(package_of(run, files_are_there=True))
    assert header["files"] == [] and body == b"" and header["suite"]["root"] == "suite"


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "suite/test_it.py"])
def test_a_suite_s_files_stay_in_its_directory_and_are_told_apart(path: str) -> None:
    suite = Suite((File("suite/test_it.py", b""), File(path, b"")))
    with pytest.raises(ValueError):
        package_of(Run("run", suite, ()))
    with pytest.raises(ValueError):
        package_of_suites([suite.folder])


@pytest.mark.parametrize("python", ["", "2.7.18", "3.99.0"])
def test_to_another_python_it_goes_as_source(python: str) -> None:
    header, body = decode(package_of(run_with(Module("unit", SECRET, "unit.py")), python))
    assert body == SECRET and header["modules"][0][3] is False


def test_a_student_s_own_module_goes_as_they_wrote_it() -> None:
    _, body = decode(package_of(run_with(Module("unit", SECRET, "unit.py", source_visible=True)), OURS))
    assert body == SECRET


def test_what_is_not_python_goes_as_it_is_and_fails_where_it_is_imported() -> None:
    assert code_of(Module("unit", b"def f(:", "unit.py")) == b""
    assert decode(package_of(run_with(Module("unit", b"def f(:", "unit.py")), OURS))[1] == b"def f(:"


def test_pythons_of_one_minor_version_read_each_other_s_code() -> None:
    major, minor, _ = platform.python_version_tuple()
    assert reads_our_code(f"{major}.{minor}.99") and not reads_our_code(f"{major}.{int(minor) + 1}.0")
