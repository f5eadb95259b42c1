"""Generated mutants arrive; patches, manifest lines and the list of what was rejected leave, for a person to read.

Manifest lines are written with `signed_off` no: a mutant counts when a person has read its patch, given it words and
written yes. Lines that are still unsigned are replaced by the next run; a candidate whose reason in rejected.tsv begins
with "read: " was refused by a person, and stays so.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from grader.candidates import Candidate, Rejected, patch_of
from grader.manifest import COLUMNS
from grader.unit import Unit

FURTHER_COLUMNS = ("category", "signed_off")
REJECTED_COLUMNS = ("function", "line", "operator", "change", "reason")


def write(folder: Path, own: Path, unit: Unit, taken: Sequence[Candidate], rejected: Sequence[Rejected]) -> None:
    """Write what was taken behind what `folder` holds, or else behind the manifest `own` of the course."""
    manifest = folder / "manifest.tsv"
    text, unread = without_unread((manifest if manifest.is_file() else own).read_text("utf-8"))
    for mid in unread:
        (folder / f"{mid}.patch").unlink(missing_ok=True)
    ids = _fresh_ids(text, folder)
    rows = []
    for candidate in taken:
        mid = next(ids)
        (folder / f"{mid}.patch").write_text(patch_of(unit, candidate), encoding="utf-8")
        rows.append(row_of(mid, unit.id, candidate))
    manifest.write_text(extended(text, rows), encoding="utf-8")
    (folder / "rejected.tsv").write_text(table(rejected), encoding="utf-8")


def _fresh_ids(manifest: str, folder: Path) -> Iterator[str]:
    """m23, m24 and so on: behind all that the manifest or the folder has."""
    names = [line.partition("\t")[0] for line in manifest.splitlines()] + [path.stem for path in folder.glob("*.patch")]
    last = max((int(name[1:]) for name in names if re.fullmatch(r"m[0-9]+", name)), default=0)
    while True:
        last += 1
        yield f"m{last:02}"


def row_of(mid: str, unit_id: str, candidate: Candidate) -> dict[str, str]:
    """A manifest line with words from the operator, for a person to replace by the unit's own."""
    says, function = candidate.operator.says, candidate.function.rpartition(".")[2] or "the module"
    return {
        "mid": mid,
        "unit": unit_id,
        "tier": "auto",
        "operator": candidate.operator.name,
        "line": str(candidate.line),
        "required": "false",
        "public": f"{says[0].upper()}{says[1:]}. Test {function.strip('_')} with sizes and values that all differ.",
        "private": re.sub(r"\s+", " ", candidate.change),
        "category": candidate.operator.category,
        "signed_off": "no",
    }


def without_unread(manifest: str) -> tuple[str, tuple[str, ...]]:
    """A manifest without the lines that an earlier run has written and nobody has signed off, and their ids."""
    lines = manifest.split("\n")
    unread = [line for line in lines if line.split("\t")[-1].strip() == "no" and _has_sign_off(lines)]
    kept = [line for line in lines if line not in unread]
    return "\n".join(kept), tuple(line.partition("\t")[0] for line in unread)


def _has_sign_off(lines: Sequence[str]) -> bool:
    return any(line.split("\t")[-1].strip() == "signed_off" for line in lines)


def spot(candidate: Candidate) -> tuple[str, ...]:
    """What a line of rejected.tsv says of a candidate, beside the reason."""
    change = re.sub(r"\s+", " ", candidate.change)
    return (candidate.function, str(candidate.line), candidate.operator.name, change)


def refusals(rejected: Path) -> dict[tuple[str, ...], str]:
    """Candidates that a person has read and refused, with the reason: it begins with "read: "."""
    lines = rejected.read_text("utf-8").splitlines() if rejected.is_file() else []
    cells = [line.split("\t") for line in lines]
    return {tuple(row[:-1]): row[-1] for row in cells if row[-1].startswith("read: ")}


def extended(manifest: str, rows: Sequence[Mapping[str, str]]) -> str:
    """A manifest with further rows, and with the columns they need."""
    lines = manifest.rstrip("\n").split("\n")
    header = next((line.split("\t") for line in lines if line.strip() and not line.startswith("#")), list(COLUMNS))
    missing = [name for name in FURTHER_COLUMNS if name not in header]
    done = [line + "\t" * len(missing) if line.strip() and not line.startswith("#") else line for line in lines]
    at = next(i for i, line in enumerate(lines) if line.strip() and not line.startswith("#"))
    done[at] = "\t".join([*header, *missing])
    done += ["\t".join(row.get(name, "") for name in [*header, *missing]) for row in rows]
    return "\n".join(done) + "\n"


def table(rejected: Sequence[Rejected]) -> str:
    """What was rejected, where and why, as tab-separated text."""
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None, lineterminator="\n")
    writer.writerow(REJECTED_COLUMNS)
    for each in sorted(rejected, key=lambda each: (each.candidate.line, each.candidate.id)):
        writer.writerow([*spot(each.candidate), re.sub(r"\s+", " ", each.reason)])
    return stream.getvalue()
