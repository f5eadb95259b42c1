from pathlib import Path

import pytest

from grader.unit import Unit
from tests.grader.small_course import small_unit


@pytest.fixture(scope="session")
def unit(tmp_path_factory: pytest.TempPathFactory) -> Unit:
    """The small unit Z1, with one file, double.py."""
    root: Path = tmp_path_factory.mktemp("small-course")
    return small_unit(root)
