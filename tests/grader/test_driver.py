"""What the sandbox gets of an oracle: its drive, and nothing that knows an answer."""

import ast
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from grader.driver import driver_of
from tests.grader.small_oracle import LIVE

L5_3 = Path(__file__).resolve().parents[2] / "course/oracle/L5.3/live.py"


def namespace_of(source: bytes | str) -> dict[str, Any]:
    module = ModuleType("driver")
    exec(compile(source, "driver.py", "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


def test_what_drive_needs_stays_and_the_rest_goes() -> None:
    names = {name for name in namespace_of(driver_of(LIVE.encode())) if not name.startswith("__")}
    assert names == {"np", "drive", "_called"}
    assert b"twice" not in driver_of(LIVE.encode())


def test_the_driver_of_l5_3_holds_no_expected_value_and_no_torch() -> None:
    driver = driver_of(L5_3.read_bytes())
    names = {name for name in namespace_of(driver) if not name.startswith("__")}
    assert not [name for name in names if "expect" in name.lower() or name in ("cases", "_split", "_merge", "_pcg32")]
    assert b"torch" not in driver
    assert len(driver) < len(L5_3.read_bytes()) / 2


def test_the_driver_of_l5_3_answers_as_the_whole_file_does() -> None:
    whole, driver = namespace_of(L5_3.read_text()), namespace_of(driver_of(L5_3.read_bytes()))
    from tinyllm.xfmr import mha

    for case in whole["cases"](8):
        one, other = whole["drive"](mha, case), driver["drive"](mha, case)
        assert list(one) == list(other)
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])


def test_imports_are_taken_name_by_name() -> None:
    source = b"import os, sys\nfrom math import pi, e as base\ndef drive(unit, case): return {sys: base}\n"
    assert ast.unparse(ast.parse(driver_of(source))).split("\n")[:2] == ["import sys", "from math import e as base"]


@pytest.mark.parametrize(
    "source",
    [
        b"def cases(seed): ...\n",
        b"drive = 1\n",
        b"def drive(unit, case): ...\nprint('loaded')\n",
        b"def drive(unit, case): ...\nif True:\n    x = 1\n",
        b"def drive(unit, case): ...\nx = [1]\nx[0] = 2\n",
        b"from os import *\nfor x in (1,): ...\ndef drive(unit, case): ...\n",
    ],
)
def test_a_top_level_that_cannot_be_taken_apart_is_refused(source: bytes) -> None:
    with pytest.raises(ValueError):
        driver_of(source)
