"""What a student sent, once taken in: the unit's files, the test files, and what intake did to them."""

from collections.abc import Mapping
from dataclasses import dataclass

from grader.digest import digest_of
from sandbox.records import File

TEXT_FIELDS = ("student", "course", "callback", "receipt", "ref_deps")
"""fields of the form with which a unit is handed in, beside a file field for each of its files"""
RESERVED_FIELDS = (*TEXT_FIELDS, "tests", "csrf")  # no file of a unit can have one of these for its name


@dataclass(frozen=True)
class Upload:
    """A file as it was posted: the name the client gave, and its bytes. Nothing about it is trusted."""

    name: str
    data: bytes


@dataclass(frozen=True)
class IntakeNote:
    """Something intake did, for the student to know: what ("dropped", "renamed", "normalised"), to which file, why."""

    action: str
    path: str
    message: str


@dataclass(frozen=True)
class Submission:
    """`files` maps the unit's paths to UTF-8 source with LF line ends; `tests` are relative to the tests' root."""

    unit: str
    files: Mapping[str, bytes]
    tests: tuple[File, ...]
    notes: tuple[IntakeNote, ...] = ()

    @property
    def tests_digest(self) -> str:
        """SHA-256 over the test files' paths and bytes."""
        return digest_of((file.path, file.data) for file in self.tests)

    @property
    def digest(self) -> str:
        """SHA-256 over everything sent, after intake."""
        tests = [(f"tests/{file.path}", file.data) for file in self.tests]
        return digest_of([("unit", self.unit.encode()), *sorted(self.files.items()), *tests])
