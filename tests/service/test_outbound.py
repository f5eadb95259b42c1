import contextlib
import socket
import ssl
import threading
import time

import httpcore
import pytest

from service.outbound import Outbound, Reach, Unreachable, is_public
from service.settings import Settings
from tests.service.receivers import Receiver

PUBLIC = "93.184.215.14"


class Network(httpcore.NetworkBackend):
    """Notes where a connection was asked for, and makes none."""

    def __init__(self):
        self.asked = []

    def connect_tcp(self, host, port, timeout=None, local_address=None, socket_options=None):
        self.asked.append((host, port))
        raise httpcore.ConnectError("this network is a note")


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.8.8", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "0.1.2.3"),
        *("100.64.0.1", "192.0.0.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "ff02::1", "2001:db8::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::", "2002:a00:1::"),
        *("::127.0.0.1", "", "lms.example"),
    ],
)
def test_an_address_that_only_some_can_reach_is_not_public(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", [PUBLIC, "8.8.8.8", "2606:4700:4700::1111", "64:ff9b::808:808"])
def test_an_address_of_the_internet_is_public(address):
    assert is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://lms.example/x",
            "ftp://lms.example/x",
            "file:///etc/passwd",
            "lms.example/x",
            "https://",
            "",
            "https:///x",
        ),
        *("https://user@lms.example/", "https://user:pass@lms.example/", "https://127.0.0.1/", "https://[::1]/"),
        *(
            "https://127.1/",
            "https://0x7f000001/",
            "https://2130706433/",
            "https://10.0.0.1:8443/",
            "https://0177.0.0.1/",
        ),
        *(
            "https://lms.example:99999/",
            "https://lms.exam ple/",
            "https://lms.example/\n",
            "https://l\u00e4ms.example/",
        ),
        "https://[::ffff:127.0.0.1]/",
    ],
)
def test_such_an_address_is_refused_before_anything_is_looked_up(url):
    with pytest.raises(Unreachable):
        Reach().check_url(url)


def test_any_public_host_may_be_asked_by_https():
    Reach().check_url("https://lms.example/grades?course=7")
    Reach().check_url("https://lms.example:8443/")


def test_if_hosts_are_listed_only_they_may_be_asked_also_by_http_and_in_private():
    reach = Reach.of_callbacks(Settings(callback_hosts="LMS.example, 10.0.0.7:8080"))
    for url in ("https://lms.example/", "http://lms.example:99/", "http://10.0.0.7:8080/hook"):
        reach.check_url(url)
    for url in ("https://other.example/", "http://10.0.0.7/", "https://10.0.0.7:8081/"):
        with pytest.raises(Unreachable):
            reach.check_url(url)


@pytest.mark.parametrize("found", [["127.0.0.1"], [PUBLIC, "10.0.0.1"], ["::1"], []])
def test_a_name_that_leads_inside_is_refused_and_nothing_is_connected(found):
    network = Network()
    outbound = Outbound(Reach(), look_up=lambda host, port: found, connect=network)
    with pytest.raises(Unreachable):
        outbound.post("https://rebinds.example/", b"", {})
    assert network.asked == []


def test_a_name_that_cannot_be_found_is_unreachable():
    def nowhere(host, port):
        raise socket.gaierror("no such host")

    with pytest.raises(Unreachable, match=r"gone\.example"):
        Outbound(Reach(), look_up=nowhere).post("https://gone.example/", b"", {})


def test_a_name_is_looked_up_once_and_the_connection_goes_to_what_was_looked_at():
    network = Network()
    answers = iter([[PUBLIC], ["127.0.0.1"]])
    outbound = Outbound(Reach(), look_up=lambda host, port: next(answers), connect=network)
    with pytest.raises(Unreachable):
        outbound.post("https://rebinds.example/x", b"", {})
    assert network.asked == [(PUBLIC, 443)]


def test_the_receiver_is_asked_by_its_name_though_connected_to_by_its_address():
    with Receiver() as receiver:
        reach = Reach(frozenset({f"lms.example:{receiver.port}"}))
        outbound = Outbound(reach, look_up=lambda host, port: ["127.0.0.1"])
        answer = outbound.post(f"http://lms.example:{receiver.port}/hook?x=1", b"{}", {"content-type": "text/x"})
        [(path, headers, body)] = receiver.received
    assert (answer.status, path, headers["host"]) == (204, "/hook?x=1", f"lms.example:{receiver.port}")
    assert (headers["content-type"], body) == ("text/x", b"{}")


def test_a_second_address_is_tried_where_the_first_does_not_answer():
    with Receiver() as receiver:
        outbound = Outbound(Reach(frozenset({"lms.example"})), look_up=lambda host, port: ["127.0.0.9", "127.0.0.1"])
        assert outbound.post(f"http://lms.example:{receiver.port}/", b"", {}).status == 204


def test_no_redirect_is_followed():
    with Receiver() as inner, Receiver((307, {"Location": inner.url})) as outer:
        reach = Reach(frozenset({"127.0.0.1"}))
        assert Outbound(reach).post(outer.url, b"{}", {}).status == 307
        assert inner.received == []


def test_https_means_a_certificate_of_that_name():
    with Receiver() as receiver:  # it speaks no TLS at all
        reach = Reach(frozenset({"127.0.0.1"}))
        with pytest.raises(Unreachable):
            Outbound(reach).post(f"https://127.0.0.1:{receiver.port}/", b"{}", {})
        assert receiver.received == []
    context = Outbound(reach)._tls
    assert context.check_hostname and context.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize("drip", [b"H", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"])
def test_a_receiver_that_drips_is_left_after_a_while(drip):
    stop = threading.Event()

    def serve(listener):
        connection, _ = listener.accept()
        connection.sendall(drip)
        while not stop.wait(0.05):
            try:
                connection.sendall(b"x")
            except OSError:
                break
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        outbound = Outbound(Reach(frozenset({"127.0.0.1"})), whole_seconds=0.5)
        begun_at = time.monotonic()
        with pytest.raises((httpcore.TimeoutException, httpcore.ProtocolError)):
            outbound.post(f"http://127.0.0.1:{listener.getsockname()[1]}/", b"{}", {})
        assert time.monotonic() - begun_at < 20
        stop.set()
        thread.join()


def test_of_a_long_answer_only_the_beginning_is_read():
    sent = b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n" + bytes(10_000_000)

    def serve(listener):
        connection, _ = listener.accept()
        connection.recv(65_536)
        with contextlib.suppress(OSError):
            connection.sendall(sent)
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        answer = Outbound(Reach(frozenset({"127.0.0.1"}))).post(
            f"http://127.0.0.1:{listener.getsockname()[1]}/", b"{}", {}
        )
        thread.join()
    assert (answer.status, len(answer.body)) == (200, 65_536)
