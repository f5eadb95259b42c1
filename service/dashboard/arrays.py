"""Two arrays that a course test compared go in; heat maps of both and of their difference come out, with the numbers.

Everything is drawn from what the report holds. A drawing has a title and a description, and the numbers stand beside it
in tables.
"""

import math
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from grader.compared import number
from grader.report import ComparedPart, Rows
from grader.wording import ACTUAL, EXPECTED, compared_place
from service.dashboard import wording
from service.dashboard.charts import Tone

PIXELS = 22  # of a cell's side
FAINTEST = 0.08  # so that the smallest number is still seen to be one

Row = Sequence[float | None]
"""Numbers; None where one is not finite."""


def figure(name: str, part: ComparedPart) -> Markup:
    """`name` begins the ids on the page."""
    expected, actual = _finite(part.expected), _finite(part.actual)
    found = [value for row in (*expected, *actual) for value in row if value is not None]
    low, high = min(found, default=0.0), max(found, default=0.0)
    off = [list(map(_minus, mine, yours)) for mine, yours in zip(expected, actual, strict=True)]
    most = max((abs(value) for row in off for value in row if value is not None), default=0.0)
    scale = wording.scale_of(number(low), number(high))
    drawings = Markup("").join(
        (
            _drawing(f"{name}-e", EXPECTED, scale, _shades(expected, low, high), part),
            _drawing(f"{name}-a", ACTUAL, scale, _shades(actual, low, high), part),
            _drawing(f"{name}-d", wording.DIFFERENCE, wording.off_by(number(most)), _signs(off, most), part),
        )
    )
    tables = _table(EXPECTED, part.expected, part) + _table(ACTUAL, part.actual, part)
    return Markup(
        '<figure class="chart arrays"><figcaption>{}</figcaption><div class="maps">{}</div>'
        '<div class="pair">{}</div></figure>'
    ).format(compared_place(part.axes, part.shape, part.at), drawings, tables)


def _minus(expected: float | None, actual: float | None) -> float | None:
    """None also where the difference is too large for a number."""
    off = None if expected is None or actual is None else actual - expected
    return off if off is not None and math.isfinite(off) else None


def _finite(rows: Rows) -> list[Row]:
    return [[None if isinstance(entry, str) else entry for entry in row] for row in rows]


Cell = tuple[Tone, float] | None
"""Its colour and how strong it is, from 0 to 1; None where there is no number."""


def _shades(rows: Sequence[Row], low: float, high: float) -> Iterator[Sequence[Cell]]:
    span = high / 2 - low / 2 or 1.0  # halves, as their difference is always a number
    for row in rows:
        yield [None if value is None else (Tone.INFO, (value / 2 - low / 2) / span) for value in row]


def _signs(rows: Sequence[Row], most: float) -> Iterator[Sequence[Cell]]:
    for row in rows:
        yield [
            None if value is None else (Tone.WARN if value > 0 else Tone.INFO, abs(value) / most if most else 0.0)
            for value in row
        ]


def _drawing(name: str, title: str, says: str, rows: Iterator[Sequence[Cell]], part: ComparedPart) -> Markup:
    shapes = Markup("").join(_cell(x, y, cell) for y, row in enumerate(rows) for x, cell in enumerate(row))
    rows_shown, columns = len(part.expected), len(part.expected[0])
    return Markup(
        '<div><svg class="map" viewBox="-0.1 -0.1 {width:.1f} {height:.1f}" width="{across}" height="{down}" '
        'role="img" aria-labelledby="{name}-t {name}-s">'
        '<title id="{name}-t">{title}</title><desc id="{name}-s">{says}</desc>{shapes}'
        '<rect class="first" x="{x}" y="{y}" width="1" height="1"/></svg><p aria-hidden="true">{title}</p></div>'
    ).format(
        width=columns + 0.2,
        height=rows_shown + 0.2,
        across=PIXELS * columns,
        down=PIXELS * rows_shown,
        name=name,
        title=title,
        says=says,
        shapes=shapes,
        x=part.column,
        y=part.row,
    )


def _cell(x: int, y: int, cell: Cell) -> Markup:
    if cell is None:
        return Markup('<path class="none" d="M{} {}l1 1m-1 0l1 -1"/>').format(x, y)
    tone, strength = cell
    return Markup('<rect class="{}" x="{}" y="{}" width="1" height="1" fill-opacity="{:.2f}"/>').format(
        tone, x, y, FAINTEST + (1 - FAINTEST) * strength
    )


def _table(title: str, rows: Rows, part: ComparedPart) -> Markup:
    """The numbers; rows and columns have the indices that they have in the whole array."""
    top, left = part.first
    heads = Markup("").join(Markup('<th scope="col">{}</th>').format(left + x) for x in range(len(rows[0])))
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(top + y, _entries(y, row, part))
        for y, row in enumerate(rows)
    )
    return Markup(
        '<div class="scroll" tabindex="0" role="group" aria-label="{}"><table class="numbers"><caption>{}</caption>'
        "<thead><tr><td></td>{}</tr></thead><tbody>{}</tbody></table></div>"
    ).format(title, title, heads, body)


def _entries(y: int, row: Sequence[float | str], part: ComparedPart) -> Markup:
    return Markup("").join(
        Markup('<td class="number{}">{}</td>').format(
            " off" if part.expected[y][x] != part.actual[y][x] else "",
            Markup("<b>{}</b>").format(number(entry)) if (y, x) == (part.row, part.column) else number(entry),
        )
        for x, entry in enumerate(row)
    )
