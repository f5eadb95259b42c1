import pytest
import sqlalchemy as sa
from fastapi import APIRouter


def problem_of(answer):
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == answer.status_code
    assert problem["type"] == f"/problems/{problem['code']}"
    assert problem["title"] and problem["detail"]
    assert problem["request_id"] == answer.headers["X-Request-ID"]
    return problem


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", "/v1", 404, "not_found"),
        ("PUT", "/v1/units", 405, "method_not_allowed"),
        ("GET", "/v1/units/", 404, "not_found"),
        ("POST", "/v1/units/L0.0/submissions/", 404, "not_found"),
        ("GET", "/v1/units/L9.9", 404, "unit_unknown"),
        ("GET", "/v1/submissions/1", 401, "token_missing"),
    ],
)
def test_errors_of_the_api_are_problems(bench, method, path, status, code):
    # also for a browser: under /v1 the answer is for programs
    answer = bench.client.request(method, path, headers={"Accept": "text/html"})
    assert answer.status_code == status
    assert problem_of(answer)["code"] == code


def test_a_wrong_method_says_which_are_possible(bench):
    assert "GET" in bench.client.request("PUT", "/v1/units").headers["Allow"]


@pytest.mark.parametrize("path", ["/livez", "/v1/units", "/v1/nothing", "/"])
def test_head_answers_as_get_does(bench, path):
    head, get = (bench.client.request(method, path) for method in ("HEAD", "GET"))
    assert (head.status_code, head.headers["content-type"]) == (get.status_code, get.headers["content-type"])


def test_a_browser_on_a_wrong_page_gets_a_page(bench):
    answer = bench.client.request("GET", "/<b>x</b>", headers={"Accept": "text/html,*/*"})
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "<b>" not in answer.text


def test_a_bug_of_ours_is_a_500_that_tells_nothing_but_the_request_id(bench, caplog):
    router = APIRouter()

    @router.get("/v1/broken")
    def broken():
        raise RuntimeError("the password is swordfish")

    bench.app.include_router(router)
    answer = bench.client.request("GET", "/v1/broken")
    assert answer.status_code == 500
    problem = problem_of(answer)
    assert "swordfish" not in answer.text
    assert problem["request_id"] in problem["detail"]
    assert problem["request_id"] in caplog.text and "swordfish" in caplog.text


def test_while_the_database_is_away_every_route_says_so_and_when_to_come_back(bench):
    router = APIRouter()

    @router.get("/v1/broken")
    def broken():
        raise sa.exc.OperationalError("SELECT 1", {}, Exception("connection refused"))

    bench.app.include_router(router)
    answer = bench.client.request("GET", "/v1/broken")
    assert answer.status_code == 503
    assert problem_of(answer)["code"] == "database_unavailable"
    assert int(answer.headers["Retry-After"]) > 0


def test_every_answer_keeps_browsers_careful(bench):
    for path in ("/", "/units/L0.0", "/v1/units", "/nothing", "/static/style.css"):
        headers = bench.client.request("GET", path).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "script-src" not in headers["Content-Security-Policy"]


def test_openapi_names_an_answer_and_the_problems_of_every_route(bench):
    document = bench.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            where = f"{method} {path}"
            responses = operation["responses"]
            good = {status: answer for status, answer in responses.items() if status.startswith("2")}
            assert good and all(status == "204" or answer["content"] for status, answer in good.items()), where
            for status, answer in responses.items():
                if status.startswith("4"):
                    reference = answer["content"]["application/problem+json"]["schema"]["$ref"]
                    assert reference.rpartition("/")[2] in schemas, where
            parameters = {parameter["in"] for parameter in operation.get("parameters", [])}
            assert {"400", "500", "503"} <= set(responses), where
            if "requestBody" in operation:
                assert {"408", "413"} <= set(responses), where
            if "security" in operation:
                assert "401" in responses, where
            if "path" in parameters:
                assert "404" in responses or method == "put", where  # which makes what is not there
            if "query" in parameters:
                assert "422" in responses, where
            assert operation["summary"] and operation["tags"], where


def test_every_reference_in_openapi_resolves(bench):
    document = bench.get("/openapi.json").json()

    def references(value):
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            for item in value.values():
                yield from references(item)
        elif isinstance(value, list):
            for item in value:
                yield from references(item)

    found = set(references(document))
    assert "#/components/schemas/Report" in found
    for reference in found:
        node = document
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]
