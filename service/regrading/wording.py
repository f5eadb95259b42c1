"""What a batch of regrades is about goes in; the sentence that a teacher reads of it comes out."""

from collections.abc import Sequence

UNKNOWN = "There is no such regrade, or it is of another course."
EMPTY = "No submission of this unit has been graded in this course, so there is nothing to grade again."
CHOSEN_MISSING = "Name the submissions, or choose all or the latest of each student."
CHOSEN_NOT_WANTED = "Submissions are named only where `which` is chosen."

CAUSES = {
    "course_tests": "course tests were changed",
    "mutants": "mutants were changed",
    "wheats": "correct implementations were changed",
    "reference": "the reference was changed",
    "contract": "the contract was changed",
    "oracle": "the random cases were changed",
    "settings": "thresholds, weights or limits of the unit were changed",
    "course": "the unit was changed; what it was before is not known",
    "image": "the sandbox image was changed",
    "grader": "the grader was updated",
    "limits": "limits of the sandbox were changed",
    "failure": "grading had failed on our side before",
    "chance": "nothing was changed: it came out otherwise by chance",
}
"""Why a submission comes out otherwise."""

STAGES = {
    "trying": "being tried",
    "ready": "to be decided",
    "decided": "decided",
}


def unknown(ids: Sequence[str]) -> str:
    shown = ", ".join(ids[:3]) + (" and others" if len(ids) > 3 else "")
    return f"These are no graded submissions of the unit in this course: {shown}."


STATES = {
    "waiting": "waits",
    "trial": "tried",
    "applied": "applied",
    "dropped": "dropped",
    "rolled_back": "rolled back",
}
KINDS = {
    "verdict": "verdict",
    "course_test": "course test",
    "mutant": "mutant",
    "own_test": "own test",
    "oracle": "random cases",
}
WHICH = {
    "all": "every submission",
    "latest": "the latest submission of each student",
    "chosen": "the submissions named",
}
UNDER_WAY = "What was decided of this regrade before is still being carried out. Decide again when it has ended."
DECISION_UNKNOWN = "That is no decision on submissions of this regrade. Go back to its page, and choose there."
FORM_INCOMPLETE = "Choose a unit and what to grade again, and say why."


DECISIONS = {"apply": "Applied", "drop": "Dropped", "rollback": "Rolled back"}


def decided(what: str, submissions: int, stale: int, ended: bool) -> str:
    count = f"{submissions} submission{'' if submissions == 1 else 's'}"
    if not ended:
        return f"{DECISIONS[what]} so far: {count}. It goes on by itself, also when you leave this page."
    text = f"{DECISIONS[what]}: {count}."
    if stale:
        text += f" {stale} were left alone, because another run counts for them by now."
    return text
