import threading

import pytest
import sqlalchemy as sa

from service import blobs, database
from service.tables import blobs as rows
from service.tables import files

pytestmark = pytest.mark.both_databases


def kept(bench):
    return {row.digest for row in bench.rows(rows)}


def test_the_same_bytes_are_kept_once(bench):
    for who in ("ada", "bob"):
        bench.submitted(who)
    assert len(bench.rows(files)) == 2 * len(kept(bench))


def test_only_what_no_file_names_is_collected(bench):
    bench.submitted("ada")
    named = kept(bench)
    with database.writing(bench.engine) as connection:
        blobs.add(connection, [b"nobody's", b"nobody's either"])
    with database.writing(bench.engine) as connection:
        assert blobs.collect(connection) == 2
    assert kept(bench) == named


def test_collecting_takes_a_share_at_a_time_and_only_what_it_is_told(bench):
    loose = [b"%d" % number for number in range(5)]
    with database.writing(bench.engine) as connection:
        blobs.add(connection, loose)
        assert blobs.collect(connection, [blobs.digest_of(loose[0]), "unknown"]) == 1
        assert blobs.collect(connection, limit=3) == 3
    assert len(kept(bench)) == 1


def test_a_blob_that_is_being_named_waits_out_its_collector(bench):
    """The submission finds the blob, the collector comes, the submission names it: the blob must stay."""
    data = b"sent again"
    with database.writing(bench.engine) as connection:
        blobs.add(connection, [data])
    submission = bench.submitted("ada")
    collected: list[int] = []

    def collect():
        with database.writing(bench.engine) as connection:
            collected.append(blobs.collect(connection))

    collector = threading.Thread(target=collect)
    with database.writing(bench.engine) as connection:
        blobs.add(connection, [data])
        collector.start()
        collector.join(0.3)
        assert collector.is_alive()
        values = {"submission": submission, "kind": "test", "path": "again.py", "digest": blobs.digest_of(data)}
        connection.execute(files.insert().values(values))
    collector.join()
    assert collected == [0]
    assert blobs.digest_of(data) in kept(bench)


def test_submissions_and_collections_at_once_lose_nothing_and_refuse_nobody(bench):
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            with database.writing(bench.engine) as connection:
                blobs.collect(connection)

    collector = threading.Thread(target=churn)
    collector.start()
    try:
        for _ in range(15):
            submission = bench.submitted("ada")
            with database.writing(bench.engine) as connection:
                connection.execute(files.delete().where(files.c.submission != submission))
    finally:
        stop.set()
        collector.join()
    with database.reading(bench.engine) as connection:
        named = connection.execute(sa.select(files.c.digest)).scalars().all()
    assert named and set(named) <= kept(bench)
