"""What a suite did on correct code and on mutants comes in; the next time the same suite is sent it leaves again.

It follows from the tests, the unit and the conditions, not from the student's code, which is what changes most between
two submissions (decision 0163). Kept in this process only, and only what hangs on no chance and no time.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from grader.plan import Policy
from grader.report import MutantStatus
from grader.seen import MutationSeen
from grader.submission import Submission
from grader.unit import Unit
from sandbox.records import Environment

MOST_SUITES = 64
CERTAIN = (MutantStatus.KILLED, MutantStatus.SURVIVED, MutantStatus.INVALID)


class SuiteMemory:
    """The suites graded last, at most `most` of them. Any thread may ask."""

    def __init__(self, most: int = MOST_SUITES) -> None:
        self._most = most
        self._seen: OrderedDict[str, MutationSeen] = OrderedDict()
        self._lock = threading.Lock()

    def seen(self, key: str, see: Callable[[], MutationSeen]) -> MutationSeen:
        """What is remembered under the key; else what `see` sees, which is kept unless it could come out otherwise."""
        with self._lock:
            if key in self._seen:
                self._seen.move_to_end(key)
                return self._seen[key]
        found = see()
        if is_certain(found):
            with self._lock:
                self._seen[key] = replace(found, remembered=True)
                self._seen.move_to_end(key)
                while len(self._seen) > self._most:
                    self._seen.popitem(last=False)
        return found


def is_certain(seen: MutationSeen) -> bool:
    """Whether nothing of it hangs on chance, on time or on an ending that may have been the machine's doing."""
    suites = (seen.calibration, *(suite for _, suite in seen.correct))
    return (
        seen.stopped is None
        and seen.ended is None
        and all(decision.status in CERTAIN for decision in seen.decisions.values())
        and not any(judgement.flaky for judgement in seen.judgements.values())
        and not any(test.ended_run for suite in suites for test in suite.tests.values())
    )


def key_of(unit: Unit, submission: Submission, environment: Environment, policy: Policy) -> str:
    """Of everything that decides what a suite does beside code that is not the student's."""
    digest = hashlib.sha256(repr((unit.digest, environment, policy)).encode())
    for file in submission.tests:
        for part in (file.path.encode(), file.data):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()
