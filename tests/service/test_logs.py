import io
import json
import logging
import threading

import pytest
import sqlalchemy as sa

from service import database, logs
from service.tables import blobs

SECRET = "ag_" + "x" * 43


@pytest.fixture
def written():
    """Settle logging in one form for a test; gives what was written, and undoes it afterwards."""
    root, level = logging.getLogger(), logging.getLogger().level
    before, stream = list(root.handlers), io.StringIO()

    def settle(form, level="info"):
        logs.settle(form, level, "web", stream)
        return stream

    yield settle
    root.handlers[:] = before
    root.setLevel(level)
    logging.captureWarnings(False)


def test_a_json_line_names_what_it_is_about(written):
    stream = written("json")
    with logs.about(request="r1"), logs.about(run="2"):
        logging.getLogger("service.x").warning("took %d s", 3, extra={"fields": {"status": 200}})
    logging.getLogger("service.x").info("later")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["message"], first["level"], first["request"], first["run"], first["status"]) == (
        *("took 3 s", "warning", "r1", "2", 200),
    )
    assert "request" not in second and second["process"] == "web"


@pytest.mark.parametrize("form", ["json", "text"])
def test_nobody_can_forge_a_line_or_steer_a_terminal(written, form):
    stream = written(form)
    evil = 'a\n{"level": "error"}\r\x1b[31m\x00\u2028\ud800'
    logging.getLogger("service.x").warning("%s", evil, extra={"fields": {"path": evil}})
    text = stream.getvalue()
    assert text.endswith("\n") and text.count("\n") == 1
    assert not set(text[:-1]) & {"\r", "\x1b", "\x00", "\u2028", "\ud800"}


@pytest.mark.parametrize("form", ["json", "text"])
def test_no_token_is_written_wherever_it_turns_up(written, form):
    stream = written(form)
    try:
        raise ValueError(f"'Authorization: Bearer letmein' or {SECRET}")
    except ValueError:
        logging.getLogger("service.x").exception("for %s", SECRET, extra={"fields": {"path": f"/?t={SECRET}"}})
    text = stream.getvalue()
    assert SECRET not in text and "letmein" not in text
    assert "ValueError" in text and text.count("[token]") >= 4


def test_a_traceback_in_json_is_one_line(written):
    stream = written("json")
    try:
        raise ValueError("swordfish")
    except ValueError:
        logging.getLogger("service.x").exception("it failed")
    line = json.loads(stream.getvalue())
    assert "ValueError: swordfish" in line["traceback"] and stream.getvalue().count("\n") == 1


def test_a_long_message_is_cut(written):
    stream = written("json")
    logging.getLogger("service.x").warning("x" * 10**6)
    assert len(stream.getvalue()) < 2 * logs.MOST_CHARS


def test_the_job_engine_logs_in_the_same_form_and_nothing_below_the_level(written):
    stream = written("json", "warning")
    logging.getLogger("dbos").warning("queue")
    logging.getLogger("service.x").info("quiet")
    assert [json.loads(line)["logger"] for line in stream.getvalue().splitlines()] == ["dbos"]


def test_what_is_bound_in_one_thread_is_not_in_another():
    seen = []
    with logs.about(run="1"):
        thread = threading.Thread(target=lambda: seen.append(logs.current()))
        thread.start()
        thread.join()
    assert seen == [{}]


def test_a_request_keeps_a_harmless_id_and_is_given_another_for_a_harmful_one(bench, caplog):
    caplog.set_level(logging.DEBUG, "service.app")
    kept = bench.client.request("GET", "/livez", headers={"X-Request-ID": "trace-1.a_B"})
    assert kept.headers["X-Request-ID"] == "trace-1.a_B"
    for sent in ("a b", "x" * 65, '"}', "-x", ""):
        answer = bench.client.request("GET", "/livez", headers={"X-Request-ID": sent})
        assert answer.headers["X-Request-ID"] not in ("", sent)
    assert [record.fields["status"] for record in caplog.records] == [200] * 6


def test_what_is_sent_stands_in_no_log(bench, caplog):
    caplog.set_level(logging.DEBUG)
    bench.submitted("ada")
    assert bench.post("ada", tests="text").status_code == 422
    for secret in (*bench.tokens.values(), "twice(2) == 4"):
        assert secret not in caplog.text


def test_a_failed_statement_tells_nothing_of_what_was_to_be_stored(bench):
    with pytest.raises(sa.exc.IntegrityError) as failed, database.writing(bench.engine) as connection:
        connection.execute(blobs.insert().values(digest=None, data=b"swordfish", byte_count=9))
    assert "swordfish" not in str(failed.value)
