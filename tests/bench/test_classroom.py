import asyncio

import pytest
import sqlalchemy as sa

from bench import classroom
from grader.units import DEFAULT_COURSE, load_course
from service import database
from service.classroom import selection
from service.classroom.selection import Selection
from service.settings import Settings
from service.tables import facts, progress


@pytest.fixture
def filled(tmp_path, monkeypatch):
    """A class of 6 with 4 submissions each, asked everything once."""
    monkeypatch.setattr(classroom, "ROUNDS", 1)
    settings = Settings(data=tmp_path, course=tmp_path)
    database.migrate(settings)
    engine = database.open_engine(settings.url)
    unit = load_course(DEFAULT_COURSE).units["L5.3"]
    classroom.fill(engine, unit, students=6, count=24)
    yield settings, engine, unit
    engine.dispose()


def test_the_class_is_as_large_as_was_asked_for(filled):
    _, engine, unit = filled
    with database.reading(engine) as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(facts)).scalar_one() == 24
        assert set(connection.execute(sa.select(progress.c.graded)).scalars()) == {4}
        assert len(selection.people(connection, Selection(classroom.COURSE, unit.id))) == 6


def test_every_question_and_every_page_is_answered(filled):
    settings, engine, unit = filled
    for name, question in classroom.questions(unit).items():
        assert classroom.costs(engine, question).wall > 0, name
    shown = asyncio.run(classroom.pages(settings, engine))
    assert list(shown) == list(classroom.PAGES)
