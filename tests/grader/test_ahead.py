"""What submissions need is made before they come."""

import time
from pathlib import Path

import pytest

from grader import ahead, plan, renderings
from grader.renderings import SALTS
from grader.unit import Unit
from sandbox import package
from sandbox.kept import kept_in
from tests.grader.small_course import write_course


@pytest.fixture(autouse=True)
def forget() -> None:
    """What this process remembers."""
    forget_all()


def forget_all() -> None:
    renderings.rendered.cache_clear()
    package.code_of.cache_clear()


def test_afterwards_nothing_is_left_to_render_or_compile(unit: Unit, tmp_path: Path) -> None:
    with kept_in(tmp_path):
        ahead.make_ahead(unit)
    made = {path.name for path in tmp_path.iterdir()}
    forget_all()
    with kept_in(tmp_path):
        for salt in SALTS:
            for variant in (*plan.correct_variants(unit, plan.STANDARD), *plan.mutants(unit)):
                for module in plan.variant_modules(unit, variant, salt):
                    assert package.code_of(module)
    assert {path.name for path in tmp_path.iterdir()} == made


def test_it_is_made_beside_the_worker_and_ends_with_it(tmp_path: Path) -> None:
    course = write_course(tmp_path / "course")
    folder = tmp_path / "kept"
    until = time.monotonic() + 60
    with ahead.made_beside(course, folder):
        while not (folder.is_dir() and any(folder.iterdir())) and time.monotonic() < until:
            time.sleep(0.05)
    assert any(folder.iterdir())


def test_what_is_kept_is_what_is_rendered(unit: Unit, tmp_path: Path) -> None:
    source = plan.reference(unit).files[unit.files[0].path]
    with kept_in(tmp_path):
        first = renderings.rendered(source, 3)
        renderings.rendered.cache_clear()
        assert renderings.rendered(source, 3) == first == renderings.render(source, 3)
