"""The renderings that grading uses are those that `autograder course check` has proved."""

import pytest

from grader import proof
from grader.renderings import SALTS
from grader.unit import Unit
from grader.units import load_course
from tests.course import variants

KEPT = variants.COURSE / "renderings/L5.3.sha256"
AGAIN = "run `autograder course check`: a variant or a rewriting has changed since renderings were proved"


@pytest.fixture(scope="module")
def unit() -> Unit:
    return load_course(variants.COURSE).units["L5.3"]


def test_a_rendering_of_every_variant_is_the_one_proved(unit: Unit) -> None:
    kept = KEPT.read_text().splitlines(keepends=True)
    found = proof.variants_of(unit)
    assert len(kept) == len(found) * len(SALTS), AGAIN
    for number, variant in enumerate(found):
        salt = number % len(SALTS)
        assert proof.digest_line(variant, salt) in kept, AGAIN


@pytest.mark.full
def test_every_rendering_is_the_one_proved(unit: Unit) -> None:
    assert KEPT.read_text() == proof.digests(unit), AGAIN


def test_no_two_renderings_are_the_same_text() -> None:
    digests = [line.split()[0] for line in KEPT.read_text().splitlines()]
    assert len(set(digests)) == len(digests)
