"""`autograder mutants generate`: a unit goes in; patches, manifest lines and the list of what was rejected come out.

What was seen of each candidate is kept in a file, so that a run that was interrupted goes on where it was, and another
with the same course repeats nothing. Exit status: 0 done, 1 the reference is not accepted, 2 usage.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from grader import local, plan, sandboxes, screening
from grader.candidates import Candidate, Rejected, files_with, propose, screened
from grader.digest import digest_of
from grader.intake import take_in
from grader.mutant_files import refusals, spot, write
from grader.operators.source import Source
from grader.oracle import OracleProcesses
from grader.plan import Variant
from grader.screening import Kept, Seen, Yardstick
from grader.submission import Upload
from grader.unit import Unit
from grader.units import DEFAULT_COURSE, load_course
from sandbox.records import Sandbox

SECONDS = 6 * 3600.0
SEEDS = (0, 1)
BATCH = 8


@click.group()
def mutants() -> None:
    """Plant faults in a unit's reference."""


@mutants.command()
@click.argument("unit_id", metavar="UNIT")
@click.option("--course", "root", type=click.Path(path_type=Path), default=DEFAULT_COURSE, help="Another course tree.")
@click.option("--out", type=click.Path(path_type=Path), help="Where patches go [default: the tree's mutants/UNIT].")
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="How many to keep at most.")
@click.option("--sandbox", "kind", type=click.Choice(["docker", "process"]), default="docker", show_default=True)
@click.option("--jobs", type=click.IntRange(1, 16), default=1, show_default=True, help="Runs made at the same time.")
@click.option("--seen", type=click.Path(path_type=Path), help="Where results are kept [default: build/UNIT.jsonl].")
def generate(unit_id: str, root: Path, out: Path | None, limit: int, kind: str, jobs: int, seen: Path | None) -> None:
    """Propose faults, run them past the course tests, the staff suite and the oracle, and keep the best."""
    course = load_course(root)
    if unit_id not in course.units:
        reasons = [f"{each.file}:{each.line}: {each.reason}" for each in course.problems if each.unit == unit_id]
        raise click.UsageError("\n".join(reasons) or f"{unit_id}: the course has no such unit.")
    unit = course.units[unit_id]
    yardstick = _yardstick(unit, root)
    proposed = propose(unit)
    candidates, rejected = screened(unit, proposed)
    variants = _variants(unit, candidates)
    memory = Memory(seen or Path("build") / f"{unit_id}.jsonl", _circumstances(yardstick))
    with sandboxes.opened(kind, jobs) as sandbox:
        _run(yardstick, variants, memory, sandbox)
    found = {variant.id: memory.get(variant) for variant in variants}
    if (wrong := found[plan.REFERENCE]).failing or wrong.disagree or wrong.ending != "complete":
        raise click.ClickException(f"the reference is not accepted: {', '.join(wrong.failing) or wrong.ending}")
    verdicts = {each.id: screening.judge(found[each.id], found[plan.REFERENCE]) for each in candidates}
    rejected += tuple(Rejected(each, verdicts[each.id]) for each in candidates if verdicts[each.id])
    good = [(each, found[each.id]) for each in candidates if not verdicts[each.id]]
    folder = out or root / "mutants" / unit_id
    folder.mkdir(parents=True, exist_ok=True)
    refused = refusals(folder / "rejected.tsv")
    rejected += tuple(Rejected(each, refused[spot(each)]) for each, _ in good if spot(each) in refused)
    good = [(each, its) for each, its in good if spot(each) not in refused]
    taken, passed_over = screening.pick(good, _counted(unit, found), limit)
    write(folder, root / "mutants" / unit_id / "manifest.tsv", unit, taken, (*rejected, *passed_over))
    click.echo(summary(proposed, taken, (*rejected, *passed_over)))


def _yardstick(unit: Unit, root: Path) -> Yardstick:
    suite = root / "ref" / "learner-tests" / unit.id / unit.tests_path
    if not suite.is_dir():
        raise click.UsageError(f"there is no staff suite in {suite}: nothing says which faults can be found")
    files = {file.stem: Upload(f"{file.stem}.py", file.reference) for file in unit.files}
    staff = take_in(unit, files, local.read_paths([suite])).tests
    if unit.oracle is None:
        return Yardstick(unit, staff, ())
    with OracleProcesses() as oracles:
        return Yardstick(unit, staff, tuple(oracles.trials(unit.oracle, seed) for seed in SEEDS))


def _variants(unit: Unit, candidates: Sequence[Candidate]) -> tuple[Variant, ...]:
    """The reference, the mutants that count already, and the candidates."""
    new = (Variant(each.id, "mutant", files_with(unit, each)) for each in candidates)
    return (plan.reference(unit), *plan.mutants(unit), *new)


def _counted(unit: Unit, found: Mapping[str, Seen]) -> list[Kept]:
    sources = {file.path: Source(file.reference.decode()) for file in unit.files}
    kept = []
    for mutant in unit.mutants:
        path = next(path for path, data in mutant.files.items() if data.decode() != sources[path].text)
        start = len("".join(sources[path].text.splitlines(keepends=True)[: mutant.line - 1]))
        kept.append(Kept(mutant.id, mutant.category, sources[path].qualified(start), found[mutant.id]))
    return kept


class Memory:
    """What was seen of variants, by their text, in a file of JSON lines; other circumstances, other keys."""

    def __init__(self, path: Path, circumstances: str) -> None:
        self._path, self._circumstances = path, circumstances
        self._seen: dict[str, Seen] = {}
        text = path.read_text("utf-8") if path.is_file() else ""
        for line in text.splitlines():
            try:
                key, values = json.loads(line)
            except ValueError:  # the line that was being written when a run ended
                continue
            self._seen[key] = Seen(**{**values, **{name: tuple(values[name]) for name in ("failing", "answers")}})
        self._broken_off = bool(text) and not text.endswith("\n")

    def _key(self, variant: Variant) -> str:
        return digest_of([("circumstances", self._circumstances.encode()), *variant.files.items()])

    def __contains__(self, variant: Variant) -> bool:
        return self._key(variant) in self._seen

    def get(self, variant: Variant) -> Seen:
        return self._seen[self._key(variant)]

    def add(self, variant: Variant, seen: Seen) -> None:
        self._seen[self._key(variant)] = seen
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as lines:
            lines.write("\n" * self._broken_off + json.dumps([self._key(variant), asdict(seen)]) + "\n")
        self._broken_off = False


def _circumstances(yardstick: Yardstick) -> str:
    """Digest of all that what is seen of a variant depends on, beside the variant."""
    unit = yardstick.unit
    laid = [(f"test {file.path}", file.data) for file in (*unit.test_files, *unit.fixtures)]
    staff = [(f"staff {file.path}", file.data) for file in yardstick.staff]
    cases = [(f"case {n} {trial.id}", trial.case) for n, trials in enumerate(yardstick.trials) for trial in trials]
    return digest_of([*laid, *staff, *cases, *unit.companions.items()])


def _run(yardstick: Yardstick, variants: Sequence[Variant], memory: Memory, sandbox: Sandbox) -> None:
    left = [variant for variant in variants if variant not in memory]
    if not left:
        return
    with (
        sandbox.session(plan.preload(yardstick.unit), SECONDS, yardstick.unit.runtime) as session,
        click.progressbar(length=len(left), label=yardstick.unit.id, file=sys.stderr) as bar,
    ):
        for first in range(0, len(left), BATCH):
            batch = left[first : first + BATCH]
            planned = [
                screening.runs(f"v{first + i}", yardstick, plan.as_written(yardstick.unit, variant))
                for i, variant in enumerate(batch)
            ]
            results = iter(session.run([run for each in planned for run in each]))
            for variant, its in zip(batch, planned, strict=True):
                memory.add(variant, screening.seen(yardstick, [next(results) for _ in its]))
            bar.update(len(batch))


def summary(proposed: Sequence[Candidate], taken: Sequence[Candidate], rejected: Sequence[Rejected]) -> str:
    """What came of it, in lines."""
    reasons = Counter(re.split(r": | (?=[smw][0-9]+$)| (?=[a-z_]+:[0-9])", each.reason)[0] for each in rejected)
    kept = Counter(each.operator.category for each in taken)
    lines = [f"{len(proposed)} proposed, {len(taken)} kept, {len(rejected)} rejected"]
    lines += [f"  {count:4}  {reason}" for reason, count in reasons.most_common()]
    lines += ["kept by category: " + ", ".join(f"{name} {count}" for name, count in sorted(kept.items()))]
    for each in screening.equivalents(rejected):
        lines.append(f"a possible wheat: {each.function}, {each.operator.name}: {each.change}")
    return "\n".join(lines)
