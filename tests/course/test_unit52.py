"""Unit L5.2: what holds for it alone; the rest is in test_whole.py."""

import numpy as np

from tests.course.whole import MASKS


def test_every_query_of_the_fixture_has_a_key() -> None:
    with np.load(MASKS.course / "fixtures" / MASKS.module_file["fixtures"]["files"][0]) as kept:
        for case in ("decoder", "window"):
            assert kept[f"{case}.mask"].any(axis=-1).all(), "torch gives NaN for a query without keys"
            assert not kept[f"{case}.mask"].all(), "a mask that hides nothing shows nothing"
