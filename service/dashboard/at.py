"""A course and a unit go in; the paths of the pages about the class come out, without what a proxy put before them."""

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True)
class At:
    """A unit as it is given in a course."""

    course: str
    unit: str

    @property
    def base(self) -> str:
        return f"/courses/{quote(self.course, safe='')}/class/{quote(self.unit, safe='')}"

    @property
    def unit_page(self) -> str:
        """The unit as this course gives it; its settings lie below."""
        return f"/courses/{quote(self.course, safe='')}/units/{quote(self.unit, safe='')}"

    @property
    def data(self) -> str:
        """Where the same is told as JSON and CSV."""
        return f"/v1/courses/{quote(self.course, safe='')}/units/{quote(self.unit, safe='')}"

    def student(self, student: str) -> str:
        """A student's page. A name may hold a slash, and is then part of the path."""
        return f"{self.base}/students/{quote(student, safe='')}"


def submission(submission_id: str) -> str:
    return f"/submissions/{submission_id}"
