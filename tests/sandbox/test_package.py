"""What a run's package holds."""

import marshal
import platform

import pytest

from sandbox.package import code_of, package_of, reads_our_code
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
