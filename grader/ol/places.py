"""A folder and perhaps a course tree go in; where the course, the student's files and their tests lie comes out.

A student's repository holds `course/` and `python/`; commands work from any folder inside it.
"""

from dataclasses import dataclass
from pathlib import Path

from grader import local
from grader.intake import take_in
from grader.ol import stubs
from grader.ol.stops import NotStarted, Usage
from grader.submission import Submission, Upload
from grader.unit import Course, Unit, UnitFile
from grader.units import load_course

NO_TESTS = Upload("test_nothing_yet.py", b"")


@dataclass(frozen=True)
class Places:
    """`root` is the student's repository; `tree` the course's, which a student may do without."""

    root: Path
    tree: Path | None

    def file(self, file: UnitFile) -> Path:
        return self.root / file.path

    def tests(self, unit: Unit) -> Path:
        return self.root / unit.tests_path

    def check_inside(self, path: Path) -> None:
        """Raises Usage for a path that leads out of the repository, by a link for example: nothing is written there,
        and nothing from there is handed in."""
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise Usage(f"{path} leads out of {self.root}: it is left alone.")

    def course(self) -> Course:
        """Raises Usage where there is none."""
        if self.tree is None:
            raise Usage("There is no course tree here. Work inside your repository, or give --course DIR.")
        try:
            return load_course(self.tree)
        except OSError as error:
            raise Usage(str(error)) from error

    def unit(self, unit_id: str) -> Unit:
        """Raises Usage for a unit that cannot be worked on, saying why."""
        course = self.course()
        every = [*course.units, *(each.id for each in course.listed), *(problem.unit for problem in course.problems)]
        unit_id = next((known for known in every if known.casefold() == unit_id.casefold()), unit_id)
        if unit := course.units.get(unit_id):
            return unit
        if listed := course.listed_as(unit_id):
            raise Usage(f"{listed.id}, {listed.title}: {listed.reason}")
        problems = [f"{each.file}:{each.line}: {each.reason}" for each in course.problems if each.unit == unit_id]
        if problems:
            raise Usage(f"{unit_id} cannot be loaded: " + "\n".join(problems))
        broken = {problem.unit for problem in course.problems} - set(course.units)
        more = f" Not loaded: {', '.join(sorted(broken))}." if broken else ""
        raise Usage(f"There is no unit {unit_id}. This course has: {', '.join(course.units) or 'none'}.{more}")


def find(start: Path, tree: Path | None) -> Places:
    """The nearest folder from `start` upwards that holds course/modules; else `start` itself."""
    for folder in (start, *start.parents):
        if (folder / "course" / "modules").is_dir():
            return Places(folder, tree or folder / "course")
    return Places(start, tree)


def built(places: Places, unit: Unit) -> dict[str, Upload]:
    """The student's files of the unit, and those of the units it builds on that are there, by stem.

    Raises NotStarted.
    """
    uploads = {}
    for file in unit.files:
        if not places.file(file).is_file():
            raise NotStarted(f"There is no {file.path} yet. Begin with: ol start {unit.id}")
        places.check_inside(places.file(file))
        uploads[file.stem] = Upload(f"{file.stem}.py", places.file(file).read_bytes())
    for stem, file in unit.dep_stems.items():
        if has_work(places, file, unit):
            places.check_inside(places.file(file))
            uploads[stem] = Upload(f"{stem}.py", places.file(file).read_bytes())
    return uploads


def has_work(places: Places, file: UnitFile, unit: Unit) -> bool:
    """Whether there is a file of another unit that is not still as `ol start` laid it, but for the title in its first
    line."""
    path, contract = places.file(file), unit.contracts.get(file.module)
    if not path.is_file() or contract is None:
        return path.is_file()
    laid = stubs.stub(contract.source, "").partition("\n")[2]
    return path.read_text("utf-8", "replace").partition("\n")[2] != laid


def submission(places: Places, unit: Unit, *, with_tests: bool = True) -> Submission:
    """What would be handed in; with a file without tests while there are none. Raises NotStarted, or Rejected as
    intake does."""
    uploads = built(places, unit)
    if not with_tests or not has_tests(places, unit):
        return take_in(unit, uploads, [NO_TESTS])
    places.check_inside(places.tests(unit))
    return take_in(unit, uploads, local.read_paths([places.tests(unit)]))


def has_tests(places: Places, unit: Unit) -> bool:
    folder = places.tests(unit)
    return folder.is_dir() and any(folder.rglob("*.py"))
