import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("service", "grader", "sandbox")
PARTS = ("classroom", "course_files", "dashboard", "lti", "outbox", "people", "regrading")
MODULES = sorted(
    path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if "versions" not in path.parts
)
OPENINGS = [ROOT / "grader/ol", *(ROOT / "service" / name for name in PARTS)]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(ROOT)))
def test_a_module_opens_with_what_it_is_for(module: Path) -> None:
    assert ast.get_docstring(ast.parse(module.read_text()))


@pytest.mark.parametrize("package", OPENINGS, ids=lambda package: str(package.relative_to(ROOT)))
def test_a_package_lists_its_modules_in_its_opening(package: Path) -> None:
    opening = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    _, _, listed = opening.partition("\n\n")
    missing = [path.stem for path in package.glob("*.py") if not re.search(rf"\b{path.stem}\b", listed)]
    assert missing == ["__init__"]


def test_the_architecture_lists_every_module_once() -> None:
    listed: dict[str, list[str]] = {package: [] for package in PACKAGES}
    package = ""
    for row in (ROOT / "docs/architecture.md").read_text().splitlines():
        if row.startswith("| "):
            first, step, modules = (cell.strip() for cell in row.strip("|").split("|"))
            package = first.strip("`") or package
            listed.get(package, []).extend(re.findall(r"`(\w+)`", step + modules))
    for package, names in listed.items():
        there = [path.stem for path in (ROOT / package).glob("*.py") if path.stem != "__init__"]
        differ = ", ".join(sorted(set(names) ^ set(there)))
        assert sorted(names) == sorted(there), f"the table of modules in docs/architecture.md is wrong about {differ}"
