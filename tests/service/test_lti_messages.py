"""Messages and lists in the shapes that Canvas and Moodle document, read without a network."""

import pytest

from service.accounts import Role
from service.lti import deep_linking, memberships, placements, roles
from service.lti.messages import CLAIM, DEEP_LINKING, LINE_ITEMS, MEMBERSHIPS, Kind, launch_of
from service.lti.platforms import Platform, is_safe, origin

LIS = "http://purl.imsglobal.org/vocab/lis/v2/"
PLATFORM = Platform(
    id="0" * 16,
    name="A platform",
    issuer="https://canvas.instructure.com",
    client_id="10000000000004",
    auth_login_url="https://sso.canvaslms.com/api/lti/authorize_redirect",
    auth_token_url="https://sso.canvaslms.com/login/oauth2/token",
    key_set_url="https://sso.canvaslms.com/api/lti/security/jwks",
)

CANVAS = {
    CLAIM + "message_type": "LtiResourceLinkRequest",
    CLAIM + "version": "1.3.0",
    CLAIM + "resource_link": {
        "id": "8f3a7a3e-0a57-4f1e-a9b5-21d3e1f1a111",
        "title": "Attention",
        "description": None,
        "validation_context": None,
        "errors": {"errors": {}},
    },
    CLAIM + "deployment_id": "23:8865aa05b4b79b64a91a86042e43af5ea8ae79eb",
    CLAIM + "target_link_uri": "https://grader.example/lti/launch?unit=L5.3",
    CLAIM + "context": {
        "id": "4dde05e8ca1973bcca9bffc13e1548820eee93a3",
        "label": "ML-101",
        "title": "Machine Learning",
        "type": [LIS + "course#CourseOffering"],
    },
    CLAIM + "tool_platform": {
        "guid": "AbCd:canvas-lms",
        "name": "A university",
        "version": "cloud",
        "product_family_code": "canvas",
    },
    CLAIM + "launch_presentation": {
        "document_target": "iframe",
        "return_url": "https://uni.instructure.com/courses/7/external_content/success/external_tool_redirect",
        "locale": "en",
        "height": 400,
        "width": 800,
    },
    CLAIM + "roles": [
        LIS + "institution/person#Student",
        LIS + "membership#Learner",
        LIS + "system/person#User",
    ],
    CLAIM + "custom": {"unit": "L5.3", "canvas_user_id": 42, "empty": "$Canvas.unknown"},
    CLAIM + "lis": {"person_sourcedid": "u1234567", "course_offering_sourcedid": None},
    CLAIM + "lti11_legacy_user_id": "86157096483e6b3a50bfedc6bac902c0b20a824f",
    LINE_ITEMS: {
        "scope": ["https://purl.imsglobal.org/spec/lti-ags/scope/score"],
        "lineitems": "https://uni.instructure.com/api/lti/courses/7/line_items",
        "lineitem": "https://uni.instructure.com/api/lti/courses/7/line_items/9",
    },
    MEMBERSHIPS: {
        "context_memberships_url": "https://uni.instructure.com/api/lti/courses/7/names_and_roles",
        "service_versions": ["2.0"],
    },
    "aud": "10000000000004",
    "azp": "10000000000004",
    "iss": "https://canvas.instructure.com",
    "sub": "a445ca99-1a64-4697-9bfa-508a118245ea",
    "name": "Ada Lovelace",
    "given_name": "Ada",
    "family_name": "Lovelace",
    "email": "ada@uni.example",
    "picture": None,
    "locale": "en",
    "errors": {"errors": {}},
}

MOODLE = {
    CLAIM + "message_type": "LtiResourceLinkRequest",
    CLAIM + "version": "1.3.0",
    CLAIM + "deployment_id": "1",
    CLAIM + "target_link_uri": "https://grader.example/lti/launch",
    CLAIM + "roles": [LIS + "membership#Instructor", LIS + "system/person#Administrator"],
    CLAIM + "context": {"id": "2", "label": "ml", "title": "Machine learning", "type": ["CourseSection"]},
    CLAIM + "resource_link": {"title": "Attention", "id": "5"},
    CLAIM + "lis": {"person_sourcedid": "", "course_section_sourcedid": ""},
    CLAIM + "tool_platform": {"product_family_code": "moodle", "version": "2024100700", "guid": "m.example"},
    CLAIM + "launch_presentation": {
        "locale": "en",
        "document_target": "window",
        "return_url": "https://moodle.example/mod/lti/return.php?course=2&launch_container=4&instanceid=5",
    },
    CLAIM + "custom": {"context_memberships_url": "x"},
    LINE_ITEMS: {
        "scope": ["https://purl.imsglobal.org/spec/lti-ags/scope/score"],
        "lineitems": "https://moodle.example/mod/lti/services.php/2/lineitems?type_id=3",
        "lineitem": "https://moodle.example/mod/lti/services.php/2/lineitems/9/lineitem?type_id=3",
    },
    MEMBERSHIPS: {
        "context_memberships_url": "https://moodle.example/mod/lti/services.php/CourseSection/2/bindings/3/memberships",
        "service_versions": ["1.0", "2.0"],
    },
    "iss": "https://moodle.example",
    "sub": "3",
    "given_name": "Tess",
    "family_name": "Teacher",
    "name": "Tess Teacher",
}


def test_a_launch_from_canvas_says_who_comes_from_where():
    launch = launch_of(PLATFORM, CANVAS)
    assert (launch.kind, launch.role, launch.framed) == (Kind.RESOURCE, Role.STUDENT, True)
    assert (launch.name, launch.email, launch.sourced_id) == ("Ada Lovelace", "ada@uni.example", "u1234567")
    assert launch.deployment == "23:8865aa05b4b79b64a91a86042e43af5ea8ae79eb"
    assert (launch.context_title, launch.resource_title) == ("Machine Learning", "Attention")
    assert launch.line_item_url == "https://uni.instructure.com/api/lti/courses/7/line_items/9"
    assert placements.unit_named(launch) == "L5.3"
    assert "canvas_user_id" not in launch.custom  # a number is no text of ours


def test_a_launch_from_moodle_says_who_comes_from_where():
    launch = launch_of(PLATFORM, MOODLE)
    assert (launch.role, launch.framed, launch.email, launch.sourced_id) == (Role.TEACHER, False, "", "")
    assert (launch.context, launch.resource_link, launch.subject) == ("2", "5", "3")
    assert launch.line_items_url.endswith("lineitems?type_id=3")
    assert placements.unit_named(launch) == ""


def test_a_unit_may_be_named_by_the_address_of_the_link_alone():
    launch = launch_of(PLATFORM, {**CANVAS, CLAIM + "custom": None})
    assert placements.unit_named(launch) == "L5.3"


@pytest.mark.parametrize("claim", [name for name in CANVAS if name not in ("sub", CLAIM + "deployment_id")])
def test_what_a_platform_leaves_out_or_sends_in_another_form_is_as_if_it_were_not_there(claim):
    if claim == CLAIM + "message_type":
        return
    for value in (None, [], {}, 7, "x", [None]):
        launch_of(PLATFORM, {**CANVAS, claim: value})
    launch_of(PLATFORM, {name: value for name, value in CANVAS.items() if name != claim})


def test_addresses_that_are_not_safe_are_as_if_they_were_not_there():
    for url in ("http://uni.example/items", "javascript:alert(1)", "https://u:p@uni.example/", "https://", "//x/", 7):
        launch = launch_of(PLATFORM, {**CANVAS, LINE_ITEMS: {"lineitem": url}})
        assert launch.line_item_url == ""


def test_a_canvas_deep_linking_request_is_read_and_answered_for_one_or_several_units():
    settings = {
        "deep_link_return_url": "https://uni.instructure.com/courses/7/deep_linking_response?placement=x",
        "accept_types": ["ltiResourceLink"],
        "accept_presentation_document_targets": ["iframe", "window"],
        "accept_media_types": "application/vnd.ims.lti.v1.ltilink",
        "auto_create": False,
        "accept_multiple": False,
    }
    claims = {**CANVAS, CLAIM + "message_type": "LtiDeepLinkingRequest", DEEP_LINKING: settings}
    launch = launch_of(PLATFORM, claims)
    assert launch.kind is Kind.DEEP_LINKING
    assert not deep_linking.takes_several(launch.deep_linking)
    assert deep_linking.takes_several({**settings, "accept_multiple": "true"})
    assert not deep_linking.makes_columns({**settings, "accept_lineitem": False})
    assert deep_linking.returns_to(launch.deep_linking) == settings["deep_link_return_url"]


ROLES = [
    ([LIS + "membership#Learner"], Role.STUDENT),
    ([LIS + "membership/Learner#NonCreditLearner"], Role.STUDENT),
    ([LIS + "membership#Instructor"], Role.TEACHER),
    ([LIS + "membership/Instructor#PrimaryInstructor", LIS + "membership#Instructor"], Role.TEACHER),
    ([LIS + "membership#Administrator"], Role.TEACHER),
    ([LIS + "membership/Instructor#TeachingAssistant", LIS + "membership#Instructor"], Role.GRADER),
    ([LIS + "membership/Instructor#Grader"], Role.GRADER),
    ([LIS + "institution/person#Instructor", LIS + "membership#Learner"], Role.STUDENT),
    ([LIS + "system/person#SysAdmin", LIS + "membership#Learner"], Role.STUDENT),
    ([LIS + "institution/person#Administrator", LIS + "membership#Mentor"], None),
    ([LIS + "institution/person#Administrator"], Role.TEACHER),
    ([LIS + "institution/person#Instructor"], None),
    ([LIS + "institution/person#Student"], None),
    ([LIS + "membership#ContentDeveloper"], None),
    ([LIS + "membership#Mentor"], None),
    (["Instructor"], Role.TEACHER),
    (["Learner"], Role.STUDENT),
    ([LIS + "membership#instructor"], None),
    ([LIS + "membership#Instructor/"], None),
    ([], None),
]


@pytest.mark.parametrize(("said", "ours"), ROLES, ids=lambda value: str(value)[-60:])
def test_a_role_of_a_platform_is_ours_in_the_course_or_none(said, ours):
    assert roles.ours(said) is ours


def test_no_role_of_a_platform_is_an_administrators_here():
    for said, _ in ROLES:
        assert roles.ours([*said, LIS + "system/person#Administrator"]) is not Role.ADMIN


def test_members_as_canvas_and_as_moodle_list_them():
    canvas = {
        "status": "Active",
        "name": "Ada Lovelace",
        "picture": "https://example.instructure.com/images/thumbnails/1/x",
        "given_name": "Ada",
        "family_name": "Lovelace",
        "email": "ada@uni.example",
        "lis_person_sourcedid": "u1234567",
        "user_id": "535fa085f22b4655f48cd5a36a9215f64c062838",
        "roles": [LIS + "membership#Learner"],
    }
    moodle = {"user_id": "7", "roles": ["Instructor"], "status": "Active", "lis_person_sourcedid": ""}
    ada, tess = memberships.listed(canvas), memberships.listed(moodle)
    assert ada is not None and tess is not None
    assert (ada.role, ada.name, ada.email, ada.sourced_id, ada.active) == (
        Role.STUDENT,
        "Ada Lovelace",
        "ada@uni.example",
        "u1234567",
        True,
    )
    assert (tess.subject, tess.role, tess.name) == ("7", Role.TEACHER, "")


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://lms.example/auth", True),
        ("http://127.0.0.1:8080/auth", True),
        ("http://localhost/auth", True),
        ("http://[::1]:80/auth", True),
        ("http://lms.example/auth", False),
        ("https://lms.example:99999/", False),
        ("https://user@lms.example/", False),
        ("https://lms.example; frame-src *", False),
        ("https://lms.example,evil/", False),
        ("https://lms.example 'unsafe-inline'/", False),
        ("https://[::1", False),
        ("https://机器.example/", False),
        ("https://xn--bcher-kva.example/", True),
        ("https://lms.example/\r\nSet-Cookie: a=b", False),
        ("https://lms.example/a b", False),
        ("ftp://lms.example/", False),
        ("", False),
    ],
)
def test_an_address_is_safe_if_it_is_https_and_nothing_else(url, safe):
    assert is_safe(url) is safe


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://LMS.example:443/a?b", "https://lms.example"),
        ("https://lms.example:8443/", "https://lms.example:8443"),
        ("http://lms.example/", ""),
    ],
)
def test_the_origin_of_an_address_is_written_as_browsers_compare_it(url, expected):
    assert origin(url) == expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"frame_origin": "https://lms.example/path"},
        {"frame_origin": "*"},
        {"frame_origin": "https://lms.example 'self'"},
        {"auth_login_url": "http://lms.example/"},
        {"auth_token_url": "javascript:1"},
        {"key_set_url": ""},
        {"issuer": ""},
        {"client_id": ""},
    ],
)
def test_a_platform_that_cannot_be_is_not_built(wrong):
    values = {
        name: getattr(PLATFORM, name)
        for name in ("id", "name", "issuer", "client_id", "auth_login_url", "auth_token_url", "key_set_url")
    }
    with pytest.raises(ValueError):
        Platform(**values | wrong)


def test_the_id_of_a_new_course_is_made_of_its_title_and_never_twice():
    made = [placements.slug("Größe & Maß: ML 101") for _ in range(5)]
    assert all(name.startswith("groe-ma-ml-101-") or name.startswith("gro") for name in made)
    assert len(set(made)) == 5
    assert placements.slug("机器学习").startswith("course-")
