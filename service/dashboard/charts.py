"""Numbers go in; markup that draws them comes out: SVG without text for shapes, HTML for all that is read.

Every chart says in a sentence what it shows, and holds its numbers as a table. Colour is never the only sign. Shapes
take their colours from classes, as the pages' policy allows no inline style. (docs/decisions/0185)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from markupsafe import Markup

HEIGHT = 100  # of a drawing, in its own units; it is stretched to its place
GAP = 0.16  # of a column's width
MOST_LABELS = 6  # under an axis


class Tone(StrEnum):
    """What a shape means, as the class that colours it."""

    GOOD = "good"
    BAD = "bad"
    WARN = "warn"
    INFO = "info"
    IDLE = "idle"


@dataclass(frozen=True)
class Column:
    """`count` things of which `part` are of the better kind."""

    label: str
    count: int
    part: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.part <= self.count:
            raise ValueError("a column's part is more than the column")


@dataclass(frozen=True)
class Segment:
    """A part of a whole."""

    label: str
    count: int
    tone: Tone
    href: str | None = None


@dataclass(frozen=True)
class Mark:
    """What a character of a heat map means: in words, and as a colour."""

    says: str
    tone: Tone


@dataclass(frozen=True)
class Head:
    """The label of a row or column of a heat map; `says` more of it, `href` leads there."""

    id: str
    label: str
    says: str = ""
    href: str | None = None


@dataclass(frozen=True)
class HeatRow:
    head: Head
    cells: str  # a character for each column


def columns(
    title: str, summary: str, found: Sequence[Column], *, across: str, count: str, part: str = "", label: str = ""
) -> Markup:
    """A column for each of `found`, from left to right: a histogram, or what happened over time.

    `across`, `count` and `part` head the table of numbers: what goes from left to right, what is counted, and the
    better kind among it. `label` heads the axis.
    """
    most = max((each.count for each in found), default=0)
    if not most:
        return _figure(title, summary, Markup(""), Markup(""))
    shapes = Markup("").join(_column(place, each, most, count, part) for place, each in enumerate(found))
    drawing = Markup(
        '<div class="plot"><span class="most" aria-hidden="true">{}</span>'
        '<svg viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
        '<div class="axis" aria-hidden="true">{}</div>{}</div>'
    ).format(most, len(found), HEIGHT, summary, shapes, _axis([each.label for each in found]), _axis_name(label))
    heads = [across, count, part] if part else [across, count]
    rows = [[each.label, each.count, each.part] if part else [each.label, each.count] for each in found]
    return _figure(title, summary, drawing, _numbers(title, heads, rows))


def _column(place: int, each: Column, most: int, count: str, part: str) -> Markup:
    whole, better = HEIGHT * each.count / most, HEIGHT * each.part / most
    said = f"{each.label}: {each.count} {count}" + (f", {each.part} {part}" if part else "")
    shapes = Markup("").join(
        Markup('<rect class="{}" x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}"/>').format(
            tone, place + GAP / 2, HEIGHT - top, 1 - GAP, height
        )
        for tone, top, height in ((Tone.INFO, whole, whole - better), (Tone.GOOD, better, better))
        if height > 0
    )
    return Markup("<g>{}<title>{}</title></g>").format(shapes, said)


def _axis(labels: Sequence[str]) -> Markup:
    """Some of the labels, evenly spread: all of them if they are few."""
    if len(labels) > MOST_LABELS:
        steps = [round(n * (len(labels) - 1) / (MOST_LABELS - 1)) for n in range(MOST_LABELS)]
        labels = [labels[step] for step in steps]
    return Markup("").join(Markup("<span>{}</span>").format(label) for label in labels)


def _axis_name(label: str) -> Markup:
    return Markup('<p class="axis-name" aria-hidden="true">{}</p>').format(label) if label else Markup("")


def stacked(title: str, summary: str, found: Sequence[Segment]) -> Markup:
    """A whole as one bar of parts, with a legend that counts them."""
    total = sum(each.count for each in found)
    if not total:
        return _figure(title, summary, Markup(""), Markup(""))
    shapes, start = Markup(""), 0
    for each in found:
        shapes += Markup('<rect class="{}" x="{}" y="0" width="{}" height="1"><title>{}: {}</title></rect>').format(
            each.tone, start, each.count, each.label, each.count
        )
        start += each.count
    legend = Markup("").join(
        Markup('<li><span class="key {}" aria-hidden="true"></span>{} <b>{}</b></li>').format(
            each.tone, _linked(each.label, each.href), each.count
        )
        for each in found
    )
    drawing = Markup(
        '<svg class="stacked" viewBox="0 0 {} 1" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
        '<ul class="legend">{}</ul>'
    ).format(total, summary, shapes, legend)
    return _figure(title, summary, drawing, Markup(""))


def share(value: float | None, tone: Tone = Tone.INFO, threshold: float | None = None) -> Markup:
    """A bar for a cell of a table, beside the number it draws; `threshold` is marked by a line."""
    if value is None:
        return Markup("")
    line = (
        Markup('<line x1="{0:.2f}" x2="{0:.2f}" y1="0" y2="1"/>').format(100 * threshold)
        if threshold is not None
        else Markup("")
    )
    return Markup(
        '<svg class="share" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" width="100" height="1"/><rect class="{}" width="{:.2f}" height="1"/>{}</svg>'
    ).format(tone, 100 * min(1.0, max(0.0, value)), line)


def trend(values: Sequence[float]) -> Markup:
    """Scores from the first to the last as a line; one of them is a point."""
    if not values:
        return Markup("")
    heights = [HEIGHT * (1 - min(1.0, max(0.0, value))) for value in values]
    step = HEIGHT / max(1, len(heights) - 1)
    points = [(place * step, height) for place, height in enumerate(heights)]
    lines = Markup("").join(
        Markup('<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(*start, *end)
        for start, end in pairwise(points if len(points) > 1 else [(0.0, heights[0]), (float(HEIGHT), heights[0])])
    )
    said = " → ".join(f"{100 * value:.0f} %" for value in values[-MOST_LABELS:])
    said = f"… {said}" if len(values) > MOST_LABELS else said
    return Markup(
        '<svg class="trend" viewBox="-4 -8 108 116" preserveAspectRatio="none" role="img" aria-label="{}">'
        "<title>{}</title>{}</svg>"
    ).format(said, said, lines)


def heat_map(
    title: str,
    summary: str,
    rows: Iterable[HeatRow],
    heads: Sequence[Head],
    marks: Mapping[str, Mark],
    *,
    corner: str = "",
) -> Markup:
    """A table whose cells are characters, each of them coloured: it is read as it is seen, and needs no other table.

    A character that is not among `marks` raises KeyError.
    """
    cells = {
        char: Markup('<td class="{}">{}</td>').format(mark.tone, "" if char == " " else char)
        for char, mark in marks.items()
    }
    body = []
    for row in rows:
        if len(row.cells) != len(heads):
            raise ValueError("a row of a heat map has other columns than its heads")
        body.append(
            Markup('<tr><th scope="row" id="row-{}" title="{}">{}</th>{}</tr>').format(
                row.head.id,
                row.head.says or row.head.label,
                _linked(row.head.label, row.head.href),
                Markup("").join(cells[char] for char in row.cells),
            )
        )
    columns = Markup("").join(
        Markup('<th scope="col" data-id="{}" title="{}"><span>{}</span></th>').format(
            head.id, head.says or head.label, _linked(head.label, head.href)
        )
        for head in heads
    )
    legend = Markup("").join(
        Markup('<li data-mark="{}"><span class="key {}" aria-hidden="true">{}</span>{}</li>').format(
            "" if char == " " else char, mark.tone, char, mark.says
        )
        for char, mark in marks.items()
    )
    return Markup(
        '<figure class="chart heat"><figcaption><b>{}</b> <span class="faint">{}</span></figcaption>'
        '<ul class="legend">{}</ul>'
        '<div class="scroll" tabindex="0" role="group" aria-label="{}"><table class="heat">'
        '<thead><tr><th scope="col">{}</th>{}</tr></thead>'
        '<tbody>{}</tbody></table></div><p class="heat-says" role="status"></p></figure>'
    ).format(title, summary, legend, title, corner, columns, Markup("").join(body))


def _linked(label: str, href: str | None) -> Markup:
    return Markup('<a href="{}">{}</a>').format(href, label) if href else Markup("{}").format(label)


def _numbers(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(name) for name in heads)
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            row[0], Markup("").join(Markup('<td class="number">{}</td>').format(value) for value in row[1:])
        )
        for row in rows
    )
    return Markup(
        '<details><summary>The numbers</summary><div class="scroll" tabindex="0" role="group" aria-label="{}">'
        "<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div></details>"
    ).format(title, head, body)


def _figure(title: str, summary: str, drawing: Markup, numbers: Markup) -> Markup:
    return Markup(
        '<figure class="chart"><figcaption><b>{}</b> <span class="faint">{}</span></figcaption>{}{}</figure>'
    ).format(title, summary, drawing, numbers)
