"""What the benchmark prints."""

import pytest

from bench.table import percentile, spread, table


def test_columns_stand_under_their_heads() -> None:
    title, *_, head, row = table("Title", ["", "seconds"], [["ours", "1.5"]]).strip().splitlines()
    assert title == "Title" and head.endswith("seconds") and len(head) == len(row) and row.split() == ["ours", "1.5"]


def test_a_spread_is_median_and_range() -> None:
    assert spread([3.0, 1.0, 2.0], 1000, 0) == ("2000", "1000 to 3000")


@pytest.mark.parametrize(("share", "wanted"), [(0.5, 5.0), (0.95, 10.0), (0.9, 9.0), (0.01, 1.0), (1.0, 10.0)])
def test_a_percentile_is_a_value_that_was_seen(share: float, wanted: float) -> None:
    assert percentile([float(n) for n in range(10, 0, -1)], share) == wanted
