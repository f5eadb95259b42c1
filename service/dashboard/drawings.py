"""What is known of a class goes in; its charts come out."""

from dataclasses import dataclass

from markupsafe import Markup

from grader.report import Verdict
from service import links
from service.classroom.answers import MatrixRow, MutantRow, OverviewAnswer, QueueHealth, SeriesPoint
from service.dashboard import wording
from service.dashboard.at import At, submission
from service.dashboard.charts import Column, Head, HeatRow, Mark, Segment, Tone, columns, heat_map, stacked
from service.dashboard.saying import Saying

CELLS = {
    "K": Mark("caught", Tone.GOOD),
    "T": Mark("caught, out of time", Tone.GOOD),
    ".": Mark("survived", Tone.BAD),
    "V": Mark("void: the tests could not be judged", Tone.WARN),
    "-": Mark("not faced", Tone.IDLE),
}


@dataclass(frozen=True)
class OverviewCharts:
    progress: Markup
    verdicts: Markup
    scores: Markup
    series: Markup


def overview(found: OverviewAnswer, at: At, say: Saying) -> OverviewCharts:
    return OverviewCharts(_progress(found, at), _verdicts(found, at), _scores(found, say), _series(found, say))


def _progress(found: OverviewAnswer, at: At) -> Markup:
    """Of the class, how many have passed, are under way and have not begun."""
    under_way = found.began - found.passed
    segments = [
        Segment("passed", found.passed, Tone.GOOD, links.to(f"{at.base}/students?state=passed")),
        Segment("under way", under_way, Tone.INFO, links.to(f"{at.base}/students?state=under_way")),
        Segment("not begun", found.students - found.began, Tone.IDLE, links.to(f"{at.base}/students?state=not_begun")),
    ]
    return stacked("The class", wording.class_of(found.students, found.passed, under_way), segments)


def _verdicts(found: OverviewAnswer, at: At) -> Markup:
    segments = [
        Segment(wording.VERDICTS[each], found.verdicts.get(each, 0), wording.VERDICT_TONES[each], _with(at, each))
        for each in Verdict
        if found.verdicts.get(each)
    ]
    graded = sum(found.verdicts.values())
    return stacked("Latest submissions", wording.latest_of(graded), segments)


def _with(at: At, verdict: Verdict) -> str:
    return links.to(f"{at.base}/students?verdict={verdict.value}")


def _scores(found: OverviewAnswer, say: Saying) -> Markup:
    bars = [Column(f"{round(100 * each.low)}–{round(100 * each.high)} %", each.students) for each in found.scores]
    summary = wording.scores_of(sum(each.students for each in found.scores), say.percent(found.median_score))
    return columns("Scores", summary, bars, across="best score", count="students", label="best score of each student")


def _series(found: OverviewAnswer, say: Saying) -> Markup:
    bars = [Column(_label(found, each), max(each.submissions, each.passed), each.passed) for each in found.series]
    summary = wording.series_of(found.submissions, found.by, say.zone)
    return columns(
        "Submissions over time", summary, bars, across=found.by, count="submissions", part="passed for the first time"
    )


def _label(found: OverviewAnswer, point: SeriesPoint) -> str:
    return point.at.strftime("%a %H:%M" if found.by == "hour" else "%Y-%m-%d")


@dataclass(frozen=True)
class QueueSaid:
    tone: Tone
    state: str
    sentence: str


def queue(found: QueueHealth, say: Saying) -> QueueSaid:
    """How the queue that all courses share is, in a word and in sentences."""
    if not found.ready:
        return QueueSaid(Tone.BAD, "stands still", wording.queue_stands(found.waiting, found.missing))
    waiting = say.duration(found.oldest_seconds) if found.waiting else ""
    typical = say.duration(found.typical_seconds) if found.typical_seconds is not None else ""
    sentence = wording.queue_runs(found.waiting, found.running, found.ready, waiting, typical)
    return QueueSaid(Tone.GOOD, "runs", sentence)


def matrix(rows: tuple[MatrixRow, ...], mutants: tuple[MutantRow, ...], say: Saying) -> Markup:
    """A page of students by all mutants, those first that most miss."""
    order = sorted(range(len(mutants)), key=lambda place: (_share(mutants[place]), mutants[place].id))
    heads = [
        Head(mutants[place].id, mutants[place].id, wording.mutant_head(mutants[place]), f"#mutant-{mutants[place].id}")
        for place in order
    ]
    body = [
        HeatRow(
            Head(
                f"s{number}",
                say.line(row.name or row.student),
                wording.matrix_row(say.line(row.student), row.killed, row.total),
                links.to(submission(row.submission)),
            ),
            "".join(row.cells[place] for place in order),
        )
        for number, row in enumerate(rows)
    ]
    used = set("".join(row.cells for row in rows))
    marks = {char: mark for char, mark in CELLS.items() if char in used or char in "K."}
    return heat_map("Who catches what", wording.MATRIX, body, heads, marks, corner="student")


def _share(mutant: MutantRow) -> float:
    return mutant.share if mutant.share is not None else 1.0
