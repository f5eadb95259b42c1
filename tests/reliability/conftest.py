"""A `stage` for each test: the service as real processes, on SQLite or on a PostgreSQL server of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reliability.stage import Stage
from tests.service.postgres import Postgres

TTL_SECONDS = 5.0  # of workers here: the tests wait for it


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    """A PostgreSQL server that tests stop and kill, and start again."""
    server = Postgres()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    server = request.getfixturevalue("server") if request.param == "postgresql" else None
    made = Stage(tmp_path, server, worker_ttl_seconds=TTL_SECONDS, stop_seconds=5)
    yield made
    made.close()
