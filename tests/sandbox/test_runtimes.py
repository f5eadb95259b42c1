"""What a runtime has, its runs find imported; the plain one has nothing more."""

import pytest

from sandbox.docker_engine import DockerSandbox
from sandbox.process import ProcessSandbox
from sandbox.records import ItemOutcome, Limits, Run, Sandbox
from sandbox.runtimes import LIBRARIES, PLAIN, image_of
from tests.sandbox.conftest import make_run


def outcomes(sandbox: Sandbox, source: str, runtime: str, **options: object) -> dict[str, ItemOutcome]:
    run: Run = make_run(source, **options)  # type: ignore[arg-type]
    with sandbox.session(runtime=runtime) as session:
        (result,) = session.run([run])
    assert result.complete, result
    return {item.id.partition("::")[2]: item.outcome for item in result.record.items}


def test_the_plain_image_has_the_plain_name_and_others_are_named_after_it() -> None:
    assert image_of("a:b", PLAIN) == "a:b"
    assert len({image_of("a:b", runtime) for runtime in LIBRARIES}) == len(LIBRARIES)


TORCH_SUITE = """
import sys
loaded = "torch" in sys.modules
import torch
first = torch.rand(1)

def test_it_was_imported_before_the_fork(): assert loaded
def test_it_computes_gradients():
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    (x * x).sum().backward()
    assert torch.equal(x.grad, 2 * x.detach())
def test_one_thread_computes(): assert torch.get_num_threads() == 1
def test_a_comparison_imports_nothing_that_was_not_there():
    before = set(sys.modules)
    torch.testing.assert_close(torch.ones(2), torch.ones(2))
    assert set(sys.modules) == before
def test_its_generator_begins_alike():
    torch.manual_seed(0)
    assert torch.equal(first, torch.rand(1))
def test_a_run_may_use_as_much_memory_as_one_without_it():
    torch.zeros(400 * 2**20, dtype=torch.uint8)
def test_and_no_more():
    try:
        torch.zeros(2**30, dtype=torch.uint8)
    except RuntimeError:
        return
    raise AssertionError("a gibibyte was to be had")
"""


def test_runs_of_the_torch_runtime_find_it_imported_seeded_and_with_room(sandbox: Sandbox) -> None:
    found = outcomes(sandbox, TORCH_SUITE, "torch", memory_bytes=Limits().memory_bytes)
    assert len(found) == 7
    assert set(found.values()) == {ItemOutcome.PASSED}, found


@pytest.mark.docker
def test_the_plain_image_has_no_torch(docker_sandbox: DockerSandbox) -> None:
    source = "import importlib.util\ndef test_it(): assert importlib.util.find_spec('torch') is None\n"
    assert outcomes(docker_sandbox, source, PLAIN) == {"test_it": ItemOutcome.PASSED}


def test_reports_can_tell_what_the_runtime_has(sandbox: Sandbox) -> None:
    with sandbox.session(runtime="torch") as session:
        assert list(session.environment.libraries) == ["torch"]
    with sandbox.session() as session:
        assert session.environment.libraries == {}


@pytest.mark.docker
def test_each_runtime_keeps_a_warm_container_once_it_was_used(docker_sandbox: DockerSandbox) -> None:
    with DockerSandbox(pool_size=1) as sandbox:
        for _ in range(2):
            with sandbox.session(runtime="torch") as session:
                assert session.environment.libraries
            assert set(sandbox._fleets) == {PLAIN, "torch"}


def test_a_runtime_that_does_not_exist_is_refused_before_anything_starts() -> None:
    with pytest.raises(KeyError), ProcessSandbox().session(runtime="fortran"):
        pass
