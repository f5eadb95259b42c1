"""What we ship of npm packages is what the packages hold, in the versions that the lock pins."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
VENDOR = ROOT / "service" / "static" / "vendor"
PACKAGES = ROOT / "build" / "stryker" / "node_modules"
VENDORED: dict[str, Any] = json.loads((VENDOR / "vendored.json").read_text())


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("package", VENDORED)
def test_what_is_shipped_is_what_was_noted_when_it_was_taken_over(package: str) -> None:
    noted = {Path(path).name: found for path, found in VENDORED[package]["files"].items()}
    assert {path.name: digest(path) for path in (VENDOR / package).iterdir()} == noted


@pytest.mark.parametrize("package", VENDORED)
def test_the_versions_shipped_and_tested_are_the_same(package: str) -> None:
    lock = json.loads((ROOT / "tests" / "stryker" / "package-lock.json").read_text())
    pinned = lock["packages"][f"node_modules/{package}"]
    noted = VENDORED[package]
    assert (pinned["version"], pinned["license"]) == (noted["version"], noted["license"])


@pytest.mark.full
@pytest.mark.parametrize("package", VENDORED)
def test_what_is_shipped_is_what_the_package_holds(package: str) -> None:
    for path, noted in VENDORED[package]["files"].items():
        assert digest(PACKAGES / package / path) == noted
