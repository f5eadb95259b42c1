"""The id of a course goes in; the course comes out, or Problem 404."""

import sqlalchemy as sa

from service import offerings, wording
from service.offerings import Offering
from service.problems import Problem


def course_of(connection: sa.Connection, course: str) -> Offering:
    """The course; raises Problem 404 if there is none."""
    found = offerings.find(connection, course)
    if found is None:
        raise Problem(404, "course_unknown", wording.offering_unknown(course))
    return found
