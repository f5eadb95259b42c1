from tests.service import samples


def test_a_post_is_answered_with_the_status_object_and_where_to_look(bench):
    answer = bench.post("ada")
    assert answer.status_code == 202
    body = answer.json()
    assert answer.headers["Location"] == body["links"]["self"] == f"/v1/submissions/{body['id']}"
    assert int(answer.headers["Retry-After"]) > 0
    assert (body["unit"], body["status"], body["position"], body["attempts_left"]) == ("L0.0", "queued", 1, None)
    assert set(body) == {
        *("id", "unit", "status", "position", "estimate_seconds"),
        *("progress", "attempts_left", "links", "intake"),
    }


def test_a_graded_submission_shows_its_report_in_both_formats(bench):
    submission = bench.submitted("ada")
    assert bench.get(f"/v1/submissions/{submission}/report", "ada").status_code == 409
    bench.graded()
    assert bench.get(f"/v1/submissions/{submission}", "ada").json()["status"] == "done"
    answer = bench.get(f"/v1/submissions/{submission}/report", "ada")
    assert answer.json()["submission"]["id"] == submission
    assert answer.json()["submission"]["student"] == "ada"
    text = bench.get(f"/v1/submissions/{submission}/report?format=text", "ada")
    assert text.headers["content-type"].startswith("text/plain")
    assert "Nothing is left to do." in text.text
