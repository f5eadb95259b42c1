"""A platform's page shows the service in a frame, by TLS and from another site, in a browser that blocks what browsers
block there."""

import datetime
import ipaddress
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from playwright.sync_api import Browser, Page

from grader.unit import Course
from service.audit import By
from service.database import writing
from service.lti import platforms
from service.lti.platforms import Platform as Registered
from service.tables import lti_links, members, sessions
from service.worker import FakeGrading
from tests.browser.screen import CHROMIUM, FLAGS
from tests.browser.stage import Stage
from tests.service import samples
from tests.service.live import live
from tests.service.lti_platform import Person, Platform, loopback

pytestmark = pytest.mark.browser

UNIT = "L5.3"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that nobody signed, with its key."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + made.public_bytes(Encoding.PEM))
    return file


@pytest.fixture
def tool(tmp_path: Path, real_course: Course, certificate: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path, real_course, FakeGrading(samples.passes))
    stage.clock.now = time.time()  # the platform has the world's
    with live(stage.app, stage.settings, certificate) as running:
        stage.url = f"https://localhost:{running.port}"  # the platform is at 127.0.0.1: another site
        yield stage
    stage.close()


@pytest.fixture
def platform(tool: Stage) -> Iterator[Platform]:
    with loopback(tool.url) as platform:
        platform.add(Person("t-1", "Instructor", "Tess Teacher"), Person("s-1", "Learner", "Ada Student"))
        platform.activity("attention", unit=UNIT)
        platform.target = "iframe"
        by = By(None, tool.clock())
        with writing(tool.engine) as connection:
            registered = platforms.register(connection, Registered(id="", **platform.said()), by)
            assert registered is not None
            platforms.allow(connection, registered.id, platform.deployment, by)
        yield platform


BLOCKING = {
    "as it comes": (),
    "third parties' cookies in partitions only": ("--test-third-party-cookie-phaseout",),
}


@pytest.fixture(params=BLOCKING)
def browser(request: pytest.FixtureRequest, chromium: Browser) -> Iterator[Browser]:
    flags = [*FLAGS, *BLOCKING[request.param]]
    browser = chromium.browser_type.launch(executable_path=CHROMIUM, args=flags)
    yield browser
    browser.close()


def opened(browser: Browser, platform: Platform, person: str) -> Page:
    page = browser.new_context(ignore_https_errors=True).new_page()
    page.goto(f"{platform.url}/course/attention?person={person}")
    return page


def test_a_class_comes_in_through_a_frame(tool: Stage, platform: Platform, browser: Browser) -> None:
    teachers = opened(browser, platform, "t-1").frame_locator("iframe")
    teachers.get_by_label(f"{UNIT}:").check()
    teachers.get_by_role("button", name="Use this activity so").click()
    teachers.get_by_role("heading", level=1).filter(has_text=UNIT).wait_for()
    students = opened(browser, platform, "s-1").frame_locator("iframe")
    students.get_by_role("heading", name="What to build").wait_for()
    with writing(tool.engine) as connection:
        assert len(connection.execute(lti_links.select()).all()) == 1
        assert {row.role for row in connection.execute(members.select())} == {"teacher", "student"}
        assert len(connection.execute(sessions.select()).all()) == 2


def test_a_site_that_is_no_platform_cannot_show_us_in_a_frame(
    tool: Stage, platform: Platform, browser: Browser
) -> None:
    opened(browser, platform, "t-1").frame_locator("iframe").get_by_role("heading", level=1).wait_for()
    with writing(tool.engine) as connection:
        connection.execute(platforms.lti_platforms.update().values(frame_origin="https://elsewhere.example"))
    page = browser.new_context(ignore_https_errors=True).new_page()
    with page.expect_console_message(lambda message: "frame-ancestors" in message.text):
        page.goto(f"{platform.url}/course/attention?person=t-1")
    assert page.frame_locator("iframe").get_by_role("heading", level=1).count() == 0
