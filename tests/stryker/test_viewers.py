"""Stryker's own packages read our reports: what they count is our score, what they show is our mutant.

`make test-full` installs them below build/stryker; here they run in node and, with their page, in Chromium.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from grader import stryker
from grader.report import Report
from grader.unit import Unit
from grader.units import DEFAULT_COURSE, load_course
from grader.views import for_role
from tests.grader.form_reports import all_kinds, as_seen, failed, failing, hostile, passing, rejected, the_unit, void
from tests.grader.simulated import Act, SimulatedSuite, a_unit
from tests.grader.small_course import small_unit

pytestmark = pytest.mark.full

HERE = Path(__file__).parent
PACKAGES = HERE.parents[1] / "build" / "stryker" / "node_modules"


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory) -> Unit:
    return small_unit(tmp_path_factory.mktemp("small-course"))


@pytest.fixture(scope="module")
def real() -> Unit:
    return load_course(DEFAULT_COURSE).units["L5.3"]


def on_the_real_unit(unit: Unit, real: Unit) -> Report:
    """A report that says it is on L5.3: every other mutant is caught, every fifth by running out of time."""
    ids = [mutant.id for mutant in real.mutants]
    acts = {mid: {"test_a": Act.HANG if place % 5 == 0 else Act.FAIL} for place, mid in enumerate(ids) if place % 2}
    report = SimulatedSuite(a_unit(unit, ids, wheats=5), ("test_a", "test_b"), acts).grade()
    assert report.integrity is not None
    digests = {**report.integrity.digests, "unit": real.digest}
    return report.model_copy(update={"integrity": report.integrity.model_copy(update={"digests": digests})})


def counted(documents: list[Any]) -> list[dict[str, Any]]:
    done = subprocess.run(
        ["node", str(HERE / "metrics.mjs"), str(PACKAGES)],
        input=json.dumps(documents),
        capture_output=True,
        text=True,
        check=True,
    )
    return list(json.loads(done.stdout))


def test_the_metrics_package_counts_our_score_in_every_report(unit: Unit, real: Unit) -> None:
    made = the_unit(unit)
    pairs = [(report, stryker.result(report, made)) for report in as_seen(unit)]
    pairs += [(report, stryker.result(hostile(report), made)) for report in all_kinds(unit)]
    pairs.append((on_the_real_unit(unit, real), stryker.result(on_the_real_unit(unit, real), real)))
    for (report, _), seen in zip(pairs, counted([document for _, document in pairs]), strict=True):
        part = report.mutation
        if part is None:
            assert seen["score"] is None
            continue
        assert seen["score"] == pytest.approx(100 * part.score, abs=1e-4)
        assert seen["valid"] == part.total
        assert seen["detected"] == (part.killed if part.score else 0)


def test_the_metrics_package_makes_the_lines_of_every_mutant(unit: Unit, real: Unit) -> None:
    [file] = real.files
    [seen] = counted([stryker.result(on_the_real_unit(unit, real), real)])
    shown = {mutant["id"]: mutant for mutant in seen["mutants"]}
    reference = file.reference.decode()
    assert set(shown) == {mutant.id for mutant in real.mutants}
    for mutant in real.mutants:
        lines = shown[mutant.id]
        assert reference.count(lines["before"]) >= 1
        after = mutant.files[file.path].decode()
        assert lines["after"] in after and lines["before"] != lines["after"]


PAGE = """<!doctype html><meta charset="utf-8"><body>
<mutation-test-report-app></mutation-test-report-app>
<script src="SCRIPT"></script>
<script type="application/json" id="report">REPORT</script>
<script>
  const wrong = [];
  addEventListener('error', (event) => wrong.push(event.message));
  const app = document.querySelector('mutation-test-report-app');
  app.report = JSON.parse(document.querySelector('#report').textContent);
  const words = (node) =>
    node.nodeType === Node.TEXT_NODE ? node.data
    : ['STYLE', 'SCRIPT'].includes(node.tagName) ? ''
    : [...(node.shadowRoot?.childNodes ?? []), ...node.childNodes].map(words).join(' ');
  setTimeout(() => {
    const seen = document.createElement('pre');
    seen.id = 'seen';
    seen.textContent = JSON.stringify({ words: words(app).replace(/\\s+/g, ' '), wrong });
    document.body.append(seen);
  }, 2000);
</script>
"""


def rendered(tmp_path: Path, report: str, view: str = "") -> str:
    """The words that the page shows, by Chromium; fails on an error of the page's."""
    page = tmp_path / "page.html"
    script = (PACKAGES / "mutation-testing-elements" / "dist" / "mutation-test-elements.js").as_uri()
    page.write_text(PAGE.replace("SCRIPT", script).replace("REPORT", report), encoding="utf-8")
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run(
        [*command, "--virtual-time-budget=6000", "--dump-dom", f"{page.as_uri()}{view}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    text = done.stdout.partition('<pre id="seen">')[2].partition("</pre>")[0]
    for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&nbsp;", " "), ("&amp;", "&")):
        text = text.replace(entity, char)
    seen = json.loads(text)
    assert seen["wrong"] == []
    return str(seen["words"])


def row(words: str) -> tuple[str, int, int, int]:
    """Of all files: the score, and how many mutants were killed, survived and timed out."""
    found = re.search(r"Of covered All files (\S+) \S+ (\d+) (\d+) (\d+) ", words)
    assert found is not None, words
    return found[1], int(found[2]), int(found[3]), int(found[4])


@pytest.mark.parametrize("role", ["teacher", "student"])
def test_the_page_shows_our_score(unit: Unit, tmp_path: Path, role: str) -> None:
    for number, report in enumerate((passing(unit), failing(unit), void(unit), hostile(failing(unit)))):
        assert report.mutation is not None
        view = for_role(report, role)
        folder = tmp_path / str(number)
        folder.mkdir()
        material = the_unit(unit) if role == "teacher" else None
        score, killed, survived, timed_out = row(rendered(folder, stryker.render(view, material)))
        assert score == f"{100 * report.mutation.score:.2f}"
        assert killed + survived + timed_out == report.mutation.total


def test_the_page_shows_the_reference_with_its_mutants_to_teachers_and_their_lines_to_students(
    unit: Unit, real: Unit, tmp_path: Path
) -> None:
    report = on_the_real_unit(unit, real)
    words = rendered(tmp_path, stryker.render(report, real), "#mutant/mha.py")
    assert "class MultiHeadAttention ( Module )" in words
    assert "Killed ( 20 )" in words and "Survived ( 25 )" in words and "Timeout ( 5 )" in words
    view = for_role(report, "student")
    words = rendered(tmp_path, stryker.render(view), "#mutant/mutants")
    assert "MultiHeadAttention" not in words
    assert all(f"{mutant.id} (" in words for mutant in real.mutants)


def test_the_page_shows_why_there_are_no_mutants(tmp_path: Path) -> None:
    for number, report in enumerate((rejected(), failed())):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert row(rendered(folder, stryker.render(report))) == ("N/A", 0, 0, 0)
