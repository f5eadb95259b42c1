"""A hostile folder goes in; its submissions, each with the end it has to come to, come out.

Every folder holds an expected.toml and is one kind of attack, in one or several variations. It says only what is
hostile; the rest of a submission is borrowed from tests/samples/:

    attack    a short word for what is tried
    about     what happens
    mha       the sample whose mha.py is sent (correct_plain if nothing is said)
    after     Python that is appended to that file
    tests     the sample whose tests/ is sent (correct_plain if nothing is said); "" for none
    files     further files beside these tests: {path = text}
    upload    an archive with the tests in it, as in tests/samples/, and besides `kind` of a member of `add`: "link",
              "hard_link", "device" or "fifo"
    absent    texts that a student must find nowhere in the report
    expected  how grading ends, as in tests/samples/
    each      variations: `name`, `code`, which stands where the texts above say CODE, and, where it differs,
              any of the keys above; its `expected` is laid over the folder's
    smoke     name of the variation that every change is tried with ("" if the folder is a single submission)

A variation is named "folder/variation". CODE keeps its indentation.
"""

import io
import re
import tarfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from grader import local
from grader.submission import Upload
from tests.samples import loading as samples
from tests.samples.loading import Expected

FOLDER = Path(__file__).parent
KEYS = {"attack", "about", "mha", "after", "tests", "files", "upload", "absent", "expected", "each", "smoke"}
KINDS = {"link": tarfile.SYMTYPE, "hard_link": tarfile.LNKTYPE, "device": tarfile.CHRTYPE, "fifo": tarfile.FIFOTYPE}


@dataclass(frozen=True)
class Hostile:
    """One submission. `expected` is as in tests/samples/, but `fails` or `rejects` may be ["any"]: some, whichever, as
    with the key "any" in `course_causes`. The key "failing" there stands for each course test that must fail."""

    name: str
    attack: str
    about: str
    smoke: bool
    mha: bytes
    tests: tuple[Upload, ...]
    absent: tuple[str, ...]
    expected: Expected


@cache
def everything() -> Mapping[str, Hostile]:
    """All submissions, by name."""
    found = [one for path in sorted(FOLDER.glob("*/expected.toml")) for one in _folder(path)]
    by_name = {one.name: one for one in found}
    if len(by_name) < len(found):
        raise ValueError("two hostile submissions have one name")
    return by_name


def _folder(path: Path) -> Iterator[Hostile]:
    said = tomllib.loads(path.read_text("utf-8"))
    if unknown := set(said) - KEYS:
        raise ValueError(f"{path.parent.name}/expected.toml: unknown keys {sorted(unknown)}")
    variations = said.get("each", [{"name": ""}])
    if "smoke" in said and said["smoke"] not in {each["name"] for each in variations}:
        raise ValueError(f"{path.parent.name}/expected.toml: there is no variation {said['smoke']}")
    for each in variations:
        if unknown := set(each) - KEYS - {"name", "code"}:
            raise ValueError(f"{path.parent.name}/{each['name']}: unknown keys {sorted(unknown)}")
        yield _variation(path.parent.name, said, each)


def _variation(folder: str, said: Mapping[str, Any], each: Mapping[str, Any]) -> Hostile:
    name = f"{folder}/{each['name']}" if each["name"] else folder
    whole = {**said, **each, "expected": {**said.get("expected", {}), **each.get("expected", {})}}
    code = each.get("code", "")
    mha = (samples.FOLDER / whole.get("mha", "correct_plain") / "mha.py").read_text("utf-8")
    mha += _filled(whole.get("after", ""), code)
    suite = whole.get("tests", "correct_plain")
    files = {file.name: file.data for file in local.read_directory(samples.FOLDER / suite / "tests")} if suite else {}
    files |= {path: _filled(text, code).encode() for path, text in whole.get("files", {}).items()}
    sent = tuple(Upload(path, data) for path, data in files.items())
    return Hostile(
        name=name,
        attack=whole["attack"],
        about=whole["about"],
        smoke=said.get("smoke") == each["name"],
        mha=mha.encode(),
        tests=_packed(list(sent), whole["upload"]) if "upload" in whole else sent,
        absent=tuple(whole.get("absent", ())),
        expected=samples.expected_of(name, whole["expected"]),
    )


def _filled(text: str, code: str) -> str:
    """The text with `code` in place of each CODE, indented as that is."""
    plain = code.strip("\n")

    def placed(found: re.Match[str]) -> str:
        return ("\n" + found["indent"]).join(plain.splitlines()).join((found["indent"], ""))

    text = re.sub(r"^(?P<indent>[ ]*)CODE$", placed, text, flags=re.MULTILINE)
    return re.sub(r"\bCODE\b", lambda _: plain, text)


def _packed(files: list[Upload], recipe: Mapping[str, Any]) -> tuple[Upload, ...]:
    if not any("kind" in extra for extra in recipe.get("add", ())):
        return samples.uploads_of("hostile", files, recipe)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for file in files:
            info = tarfile.TarInfo(file.name)
            info.size = len(file.data)
            archive.addfile(info, io.BytesIO(file.data))
        for extra in recipe["add"]:
            info = tarfile.TarInfo(extra["name"])
            info.type = KINDS[extra["kind"]]
            info.linkname = extra.get("to", "")
            archive.addfile(info)
    return (Upload("tests.tar.gz", stream.getvalue()),)
