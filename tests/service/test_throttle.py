from service import throttle
from service.throttle import Throttle, network_of


def test_who_asks_too_often_waits_until_the_first_request_is_long_past():
    asked = Throttle(most=2, window_seconds=60.0)
    assert [asked.wait_seconds("192.0.2.1", now) for now in (0.0, 10.0, 20.0, 59.0)] == [0.0, 0.0, 40.0, 1.0]
    assert asked.wait_seconds("192.0.2.2", 20.0) == 0.0
    assert asked.wait_seconds("192.0.2.1", 60.0) == 0.0


def test_a_whole_network_counts_as_one_address():
    assert network_of("2001:db8:1:2:3::4") == network_of("2001:db8:1:2::9")
    assert network_of("2001:db8:1:3::4") != network_of("2001:db8:1:2::9")
    assert network_of("192.0.2.1") == "192.0.2.1" and network_of("testclient") == "testclient"


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(throttle, "MOST_ADDRESSES", 3)
    asked = Throttle(most=1)
    for number in range(10):
        asked.wait_seconds(f"192.0.2.{number}", 0.0)
    assert list(asked._seen) == ["192.0.2.7", "192.0.2.8", "192.0.2.9"]


def test_logins_and_launches_of_nobody_are_put_off_and_pages_are_not(bench):
    bench.service.throttle._most = 1
    assert bench.client.request("GET", "/lti/login").status_code == 400
    for method, path in (
        ("GET", "/lti/login"),
        ("POST", "/lti/login"),
        ("POST", "/lti/launch"),
        ("GET", "/lti/register"),
        ("POST", "/sign-in"),
        ("POST", "/set-password"),
    ):
        answer = bench.client.request(method, path)
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "61"), path
    assert bench.client.request("GET", "/sign-in").status_code == 200
