"""What the pages about a class call things: names of states and verdicts, their colours, and sentences."""

from grader.report import MutantStatus, Outcome, Verdict
from service.dashboard.charts import Tone
from service.runs import FIRST, REGRADE, Status

TABS = {
    "Overview": "",
    "Tests": "/tests",
    "Mutants": "/mutants",
    "Misconceptions": "/misconceptions",
    "Students": "/students",
}

VERDICTS = {
    Verdict.PASS: "passed",
    Verdict.FAIL: "not passed",
    Verdict.REJECTED: "rejected",
    Verdict.GRADER_ERROR: "our failure",
}
VERDICT_TONES = {
    Verdict.PASS: Tone.GOOD,
    Verdict.FAIL: Tone.BAD,
    Verdict.REJECTED: Tone.WARN,
    Verdict.GRADER_ERROR: Tone.IDLE,
}
STATUSES = {
    Status.QUEUED: "waiting",
    Status.RUNNING: "being graded",
    Status.DONE: "graded",
    Status.ERROR: "our failure",
    Status.CANCELLED: "cancelled",
}
STATUS_TONES = {
    Status.QUEUED: Tone.IDLE,
    Status.RUNNING: Tone.INFO,
    Status.DONE: Tone.GOOD,
    Status.ERROR: Tone.WARN,
    Status.CANCELLED: Tone.IDLE,
}
OUTCOMES = {
    Outcome.PASSED: "passed",
    Outcome.FAILED: "failed",
    Outcome.ERROR: "error",
    Outcome.TIMEOUT: "out of time",
    Outcome.SKIPPED: "skipped",
    Outcome.NOT_RUN: "not run",
}
OUTCOME_TONES = {
    Outcome.PASSED: Tone.GOOD,
    Outcome.FAILED: Tone.BAD,
    Outcome.ERROR: Tone.BAD,
    Outcome.TIMEOUT: Tone.BAD,
    Outcome.SKIPPED: Tone.IDLE,
    Outcome.NOT_RUN: Tone.IDLE,
}
MUTANTS = {
    MutantStatus.KILLED: "caught",
    MutantStatus.TIMEOUT: "caught, out of time",
    MutantStatus.SURVIVED: "survived",
    MutantStatus.INVALID: "not built",
    MutantStatus.VOID: "void",
}
MUTANT_TONES = {
    MutantStatus.KILLED: Tone.GOOD,
    MutantStatus.TIMEOUT: Tone.GOOD,
    MutantStatus.SURVIVED: Tone.BAD,
    MutantStatus.INVALID: Tone.IDLE,
    MutantStatus.VOID: Tone.IDLE,
}
RUN_KINDS = {FIRST: "first", REGRADE: "regrade", "trial": "trial"}
