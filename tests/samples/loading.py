"""A sample's folder goes in; what is to be sent, and how grading it has to end, come out.

Samples of L5.3 lie in folders here, those of another unit one folder deeper, in UNIT/, which belongs to their name. A
sample is a submission with an expected end, described in its expected.toml:

    kind      what it is an example of; `smoke = true` marks the one of its kind that every change is tried with
    about     what happened to the student
    mha       the sample whose mha.py, or other file of its unit, is sent, if not its own; `mha_encoding` is what that
              file is saved in
    sent_as   the name without .py under which it is sent, if not its own
    tests     the sample whose tests/ is sent, if not its own
    [upload]  how the tests are sent, if not as a folder: see `Upload recipe`
    [expected] how grading ends: see `Expected`

Upload recipe: `pack` is "zip", "tar.gz" or "files"; `under` the folder everything lies in; `line_ends = "crlf"` and
`bom = true` change Python files; `names` is "cp437" or "unflagged" (UTF-8 without saying so), as old programs and macOS
write them; `rename` maps the name of a file of tests/ to the one it is packed under; `add` lists further members, each
with `name` and `text` or `zeros` (a number of bytes). So an archive stays text that can be read here.
"""

import gzip
import io
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from grader import local
from grader.submission import Upload

FOLDER = Path(__file__).parent
KEYS = {"kind", "about", "smoke", "mha", "mha_encoding", "sent_as", "tests", "upload", "expected"}
FIRST = "L5.3"
RECIPE_KEYS = {"pack", "under", "line_ends", "bom", "names", "rename", "add"}
PACKED_AT = (2025, 9, 1, 12, 0, 0)


@dataclass(frozen=True)
class Expected:
    """How a sample ends. What is None is not compared.

    fails: the course tests that do not pass; "catches:s03" stands for those that say they catch s03, "all" for all.
    rejects: the student's tests that the report says reject correct code. own_fails: those that fail on the own code.
    unsteady: tests that draw from the operating system; in which way they are found wrong depends on the draw.
    causes and course_causes: code of the cause by test, "late" for either kind of time.
    first_screen: texts in the first screen of the report as its student reads it, from first_screens.toml.
    advice: texts in the advice by test. messages: texts in what a course test said.
    problems: "code:file:line" of every contract problem. intake: texts in the notes of intake. next_step: texts in it.
    mutants: the status of every mutant. tests_total: how many tests were found. oracle: what the oracle says.
    """

    verdict: str
    reasons: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()
    score_min: float = 0.0
    score_max: float = 1.0
    score_if_valid_min: float = 0.0
    killed: tuple[str, ...] = ()
    survived: tuple[str, ...] = ()
    mutants: str | None = None
    rejects: tuple[str, ...] = ()
    unsteady: tuple[str, ...] = ()
    own_fails: tuple[str, ...] | None = None
    causes: Mapping[str, str] = field(default_factory=dict)
    course_causes: Mapping[str, str] = field(default_factory=dict)
    advice: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    messages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    intake: tuple[str, ...] = ()
    next_step: tuple[str, ...] = ()
    first_screen: tuple[str, ...] = ()
    tests_total: int | None = None
    oracle: str | None = None


@dataclass(frozen=True)
class Sample:
    name: str
    kind: str
    about: str
    smoke: bool
    mha: bytes
    tests: tuple[Upload, ...]
    expected: Expected
    sent_as: str


def units() -> tuple[str, ...]:
    """The units that have samples."""
    return (FIRST, *sorted({path.parent.parent.name for path in FOLDER.glob("*/*/expected.toml")}))


def names(unit: str = FIRST) -> tuple[str, ...]:
    """The names of a unit's samples."""
    prefix = "" if unit == FIRST else f"{unit}/"
    return tuple(sorted(prefix + path.parent.name for path in FOLDER.glob(f"{prefix}*/expected.toml")))


@cache
def first_screens() -> Mapping[str, list[str]]:
    """What the first screen of a sample has to name, by the sample's name."""
    table = tomllib.loads((FOLDER / "first_screens.toml").read_text("utf-8"))
    return {name if unit == FIRST else f"{unit}/{name}": texts for unit in table for name, texts in table[unit].items()}


def settings(name: str) -> dict[str, Any]:
    """expected.toml as it stands."""
    return tomllib.loads((FOLDER / name / "expected.toml").read_text("utf-8"))


def load(name: str) -> Sample:
    """The sample in the folder `name`. Raises ValueError for an expected.toml that says something unknown."""
    said = settings(name)
    unknown = set(said) - KEYS
    if unknown:
        raise ValueError(f"{name}/expected.toml: unknown keys {sorted(unknown)}")
    (file,) = (FOLDER / said.get("mha", name)).glob("*.py")
    mha = file.read_bytes()
    if "mha_encoding" in said:
        mha = mha.decode("utf-8").encode(said["mha_encoding"])
    files = local.read_directory(FOLDER / said.get("tests", name) / "tests")
    return Sample(
        name,
        said["kind"],
        said["about"],
        said.get("smoke", False),
        mha,
        uploads_of(name, files, said["upload"]) if "upload" in said else tuple(files),
        expected_of(name, said["expected"] | {"first_screen": first_screens().get(name, [])}),
        said.get("sent_as", file.stem),
    )


def expected_of(name: str, said: Mapping[str, Any]) -> Expected:
    unknown = set(said) - {one.name for one in fields(Expected)}
    if unknown:
        raise ValueError(f"{name}/expected.toml: unknown expectations {sorted(unknown)}")
    return Expected(**{key: _frozen(value) for key, value in said.items()})


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(inner) for key, inner in value.items()}
    return tuple(value) if isinstance(value, list) else value


# -- uploads ---------------------------------------------------------------------------------------------------------


def uploads_of(name: str, files: list[Upload], recipe: Mapping[str, Any]) -> tuple[Upload, ...]:
    unknown = set(recipe) - RECIPE_KEYS
    if unknown:
        raise ValueError(f"{name}/expected.toml: unknown words of the recipe {sorted(unknown)}")
    members = list(_members(files, recipe))
    match recipe["pack"]:
        case "zip":
            return (Upload("tests.zip", _zip(members, recipe.get("names", "flagged"))),)
        case "tar.gz":
            return (Upload("tests.tar.gz", _tar_gz(members)),)
        case "files":
            return tuple(Upload(member, data) for member, data in members)
        case other:
            raise ValueError(f"{name}/expected.toml: cannot pack {other}")


def _members(files: list[Upload], recipe: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    under = recipe.get("under", "")
    for file in files:
        data = file.data
        if file.name.endswith(".py"):
            data = data.replace(b"\n", b"\r\n") if recipe.get("line_ends") == "crlf" else data
            data = b"\xef\xbb\xbf" + data if recipe.get("bom") else data
        path = recipe.get("rename", {}).get(file.name, file.name)
        yield (f"{under}/{path}" if under else path), data
    for extra in recipe.get("add", ()):
        yield extra["name"], extra["text"].encode() if "text" in extra else bytes(extra["zeros"])


class _OldName(zipfile.ZipInfo):
    """A member named as programs do that set no UTF-8 flag."""

    encoding = "cp437"

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:
        return self.filename.encode(self.encoding), self.flag_bits & ~0x800


class _MacName(_OldName):
    encoding = "utf-8"


_NAMES = {"flagged": zipfile.ZipInfo, "cp437": _OldName, "unflagged": _MacName}


def _zip(members: list[tuple[str, bytes]], names: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            info = _NAMES[names](name, PACKED_AT)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return stream.getvalue()


def _tar_gz(members: list[tuple[str, bytes]]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return gzip.compress(stream.getvalue(), mtime=0)
