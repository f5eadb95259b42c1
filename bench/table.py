"""Figures arrive; lines to print leave."""

from collections.abc import Iterable, Sequence
from statistics import median


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [list(head), *map(list, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    return "\n".join([f"\n{title}", "", *lines])


def spread(values: Sequence[float], scale: float = 1.0, digits: int = 1) -> tuple[str, str]:
    """Median, and range."""
    shown = [f"{value * scale:.{digits}f}" for value in (median(values), min(values), max(values))]
    return shown[0], f"{shown[1]} to {shown[2]}"


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(len(ordered) * share * 1000) // 1000) - 1))]
