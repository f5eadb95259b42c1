from pathlib import Path

import pytest

from grader.units import DEFAULT_COURSE
from service.settings import Settings, from_environment, to_environment


def test_the_command_line_wins_over_the_environment_and_the_environment_over_the_default():
    environ = {"AUTOGRADER_DATA": "/from/environment", "AUTOGRADER_JOBS": "3"}
    settings = from_environment(environ, data=Path("/from/line"))
    assert (settings.data, settings.jobs, settings.course) == (Path("/from/line"), 3, DEFAULT_COURSE)


def test_the_children_of_serve_read_the_same_settings():
    settings = Settings(
        data=Path("/data"),
        course=Path("/course"),
        database_url="sqlite:///x",
        sandbox="process",
        image="abc",
        runtime="runsc",
        jobs=5,
        slots=2,
        max_body_bytes=1234,
        max_uploads=3,
        max_queued=4,
        min_free_bytes=5,
        memory_reserve_bytes=6,
        cache=False,
        stop_seconds=1.5,
        public_url="https://grader.example/grader",
        root_path="/grader",
        platform_hosts="moodle.campus.example",
        forwarded_allow_ips="10.0.0.0/8,::1",
        metrics_token="scrape-me",
        log="json",
        log_level="error",
    )
    assert from_environment(to_environment(settings)) == settings


@pytest.mark.parametrize(
    "environ",
    [
        {"AUTOGRADER_JOBS": "0"},
        {"AUTOGRADER_JOBS": "many"},
        {"AUTOGRADER_SANDBOX": "none"},
        {"AUTOGRADER_SLOTS": "-1"},
        {"AUTOGRADER_CACHE": "maybe"},
        {"AUTOGRADER_MAX_QUEUED": "0"},
        *({"AUTOGRADER_ROOT_PATH": path} for path in ("grader", "/grader/", "//host", "/a/../b", "/")),
        *({"AUTOGRADER_FORWARDED_ALLOW_IPS": ips} for ips in ("proxy.example", "10.0.0.1/8", "127.0.0.1,,::1")),
        *(
            {"AUTOGRADER_PUBLIC_URL": url}
            for url in ("grader.example", "https://grader.example/", "https://a@b", "ftp://a")
        ),
        {"AUTOGRADER_PUBLIC_URL": "https://grader.example/a", "AUTOGRADER_ROOT_PATH": "/b"},
        {"AUTOGRADER_LOG": "xml"},
        {"AUTOGRADER_LOG_LEVEL": "loud"},
        {"AUTOGRADER_MAX_STREAMS": "0"},
    ],
)
def test_odd_settings_are_refused_at_once(environ):
    with pytest.raises(ValueError):
        from_environment(environ)


def test_without_a_url_the_database_is_one_file_in_the_data_directory(tmp_path):
    assert Settings(data=tmp_path, course=tmp_path).url == f"sqlite:///{tmp_path}/autograder.sqlite"


@pytest.mark.parametrize(("text", "cache"), [("off", False), ("0", False), ("On", True), ("true", True)])
def test_a_switch_is_on_or_off(text, cache):
    assert from_environment({"AUTOGRADER_CACHE": text}).cache is cache
