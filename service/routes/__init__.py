"""The routes, a module for each thing asked about; `ALL` is what the application serves."""

from service.course_files import routes as course
from service.outbox import routes as deliveries
from service.regrading import routes as regrading
from service.routes import (
    audit,
    classes,
    classroom,
    diffs,
    events,
    grades,
    health,
    hints,
    offerings,
    overrides,
    quizzes,
    regrades,
    students,
    submissions,
    submit,
    units,
)

ALL = (
    submit.router,
    submissions.router,
    diffs.router,
    hints.router,
    quizzes.router,
    events.router,
    units.router,
    classes.router,
    course.router,
    classroom.router,
    grades.router,
    offerings.router,
    overrides.router,
    regrades.router,
    regrading.router,
    students.router,
    deliveries.router,
    audit.router,
    health.router,
)
