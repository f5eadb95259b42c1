"""Every sentence the service itself says: values go in, text that says what to do next comes out."""

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from grader.unit import Unit
from service.accounts import Role
from service.runs import Status

TOKEN_MISSING = (
    "This needs a token. Send it as the header 'Authorization: Bearer TOKEN'; the course staff give you one "
    "(autograder token create)."
)
TOKEN_INVALID = "This token is unknown, expired or revoked. Ask the course staff for a new one."
SUBMISSION_UNKNOWN = "There is no such submission, or it is not yours."
STUDENT_UNKNOWN = "Nothing that is stored names this student. Names are compared letter by letter."
RUN_UNKNOWN = "This submission has no such run; see its list of runs."
STUDENT_MISMATCH = (
    "A student's token submits for its own student only. Leave the field 'student' out, or use that student's token."
)
PAGE_UNKNOWN = "'after' must be the value of 'next' from the page before, with the same order. Start without it."
BODY_UNREADABLE = "The request's body is not readable. Send JSON in UTF-8."
BODY_TOO_LARGE = "The request's body is larger than this service takes. Send less."
HTTP_UNREADABLE = "This is not a request that the service can read: its head is too long, or it is not HTTP/1.1."
STREAMS_FULL = "Too many clients follow submissions just now. Ask the submission's own address now and then instead."
UPLOAD_BROKEN = "The upload ended before it was complete. Send it again."
KEEP_RECEIPT = "Send the same again later, with the receipt: the time in it is the one that counts."
TRY_AGAIN = "Try again in a moment."
DATABASE_BUSY = "The database is too busy to answer."
DATABASE_FULL = "The database's disk is full, so nothing can be stored until the staff has made room."
DATABASE_UNAVAILABLE = "The database does not answer."
TOO_MANY_UPLOADS = "Too many uploads are under way. Nothing of yours was read; send it again in a few seconds."
IDEMPOTENCY_MISMATCH = (
    "This Idempotency-Key was used for a submission with other fields or files. Use a new key for a new submission."
)
IDEMPOTENCY_IN_FLIGHT = "A request with this Idempotency-Key is still being answered. Ask again in a moment."
RECEIPT_UNREADABLE = "it is not one of this service's; send the text exactly as you got it"
RECEIPT_OF_OTHER_FILES = (
    "it is for other files, another unit, course or student; send exactly what you sent when you got it"
)
RECEIPT_OF_OTHER_TOKEN = "it was given to somebody else"
WORKER_STARTING = "worker: starting"
NO_UNITS = "no unit could be loaded; see the problems in /v1/units"


def curl(unit: Unit, base_url: str, token: str = "$TOKEN", fields: Mapping[str, str] | None = None) -> str:
    """The command that submits this unit, with further text fields."""
    words = [f"-F {file.stem}=@{file.stem}.py" for file in unit.files]
    words += ["-F tests=@tests.zip", *(f"-F {shlex.quote(f'{name}={text}')}" for name, text in (fields or {}).items())]
    return (
        f'curl -sS -H "Authorization: Bearer {token}" {" ".join(words)} '
        f"'{base_url.rstrip('/')}/v1/units/{unit.id}/submissions?wait=60'"
    )


def ol(unit: Unit, base_url: str) -> str:
    """The commands with which a student begins this unit and hands it in."""
    lines = (
        (f"ol login {base_url.rstrip('/')}", "once; asks for your token"),
        (f"ol start {unit.id}", "lays what you begin with"),
        (f"ol check {unit.id}", "grades on your machine, and uses no attempt"),
        (f"ol submit {unit.id}", "hands in, and prints the report"),
    )
    width = max(len(command) for command, _ in lines)
    return "\n".join(f"{command:<{width}}  # {says}" for command, says in lines)


TOO_MANY_REQUESTS = "Your address asks too often. Wait a minute, then try again."
OVERRIDE_INCOMPLETE = "A grade set by hand needs a student, a number of percent from 0 to 100, and a reason."
OVERRIDE_UNKNOWN = "No grade was set by hand for this student."
HINTS_WITHHELD = "The course gives no hints for this submission. Its report says how much is told."


DIFF_BEFORE_PASSING = "The reference is shown beside a submission once it has passed."
DIFF_WITHHELD = "This course does not show the reference now."
QUIZ_OF_STUDENTS = "Questions are answered by students of the course, each with a token or session of their own."


def quiz_unknown(unit: str) -> str:
    return f"Unit {unit} has no questions."


def role_missing(role: Role) -> str:
    return f"This is for teachers; your token has the role {role.value}."


def admin_missing(role: Role) -> str:
    return f"This is for administrators; your token has the role {role.value}."


def unit_unknown(unit: str, known: Iterable[str]) -> str:
    names = ", ".join(known) or "none"
    return f"There is no unit {_shown(unit)}. This course has: {names}."


def course_unknown(course: str) -> str:
    return f"There is no course {_shown(course)}. Leave the field 'course' out for the default course."


def field_is_file(name: str) -> str:
    return f"'{name}' is a text field, but a file was sent. Send -F {name}=VALUE without an @."


def field_repeated(name: str) -> str:
    return f"'{name}' was sent more than once. Send it once."


def field_invalid(name: str, most: int) -> str:
    return f"'{name}' must be at most {most} printable characters."


def file_as_text(name: str) -> str:
    return f"'{name}' was sent as text, not as a file. With curl, put an @ before the file's name: -F {name}=@FILE."


def file_missing(names: Sequence[str], command: str) -> str:
    fields = " and ".join(f"'{name}'" for name in names)
    return f"The form lacks the file field {fields}. Send: {command}"


def field_unknown(names: Sequence[str], command: str) -> str:
    fields = ", ".join(_shown(name) for name in names)
    return f"This unit does not take the field {fields}. Send: {command}"


def media_type_wrong(found: str) -> str:
    return f"Send the files as multipart/form-data (curl -F does), not as {found or 'nothing'}."


def multipart_unreadable(reason: str) -> str:
    return f"The body is not readable multipart/form-data: {reason}"


def streams_of_token(most: int) -> str:
    return f"This token follows {most} submissions already; end one of those streams first."


def upload_too_slow(most_seconds: float) -> str:
    return f"The upload took longer than {most_seconds:g} s. Send it again."


def upload_too_large(most_bytes: int) -> str:
    return f"The upload is larger than {most_bytes} bytes. Send only the unit's files and your tests."


def upload_stalled(most_seconds: float) -> str:
    return f"Nothing arrived for {most_seconds:g} s, or next to nothing. Send it again."


def idempotency_key_invalid(most: int) -> str:
    return f"An Idempotency-Key is 1 to {most} printable ASCII characters, such as a random UUID."


def disk_low(free: int, least: int) -> str:
    return (
        f"The service's disk is nearly full ({free // 2**20} MiB are free, {least // 2**20} MiB are needed), so "
        "nothing is taken in until the staff has made room."
    )


def queue_full(waiting: int) -> str:
    return f"{waiting} submissions wait to be graded, so nothing more is taken in for now."


def receipt_refused(reason: str) -> str:
    return f"The receipt does not count here: {reason}. Leave it out to submit with the time of now."


def receipt_expired(until: datetime) -> str:
    return f"it was valid until {until:%Y-%m-%d %H:%M:%S} UTC, 24 hours from when it was given"


def request_invalid(wrong: Sequence[Mapping[str, str]]) -> str:
    """`wrong` holds where and message of each part that is not valid."""
    parts = "; ".join(f"{part['where']}: {part['message']}" for part in wrong)
    return f"The request is not valid. {parts}."


def not_found(path: str) -> str:
    return f"There is nothing at {path}."


def method_not_allowed(method: str, path: str) -> str:
    return f"{method} is not possible at {path}."


def failed_on_our_side(request_id: str) -> str:
    return (
        "Something failed on our side; nothing was lost that had been accepted. Try again, and if it happens "
        f"again, tell the course staff the request id {request_id}."
    )


def report_not_ready(status: Status) -> str:
    if status is Status.CANCELLED:
        return "This submission was cancelled before it was graded, so there is no report. Submit again."
    return f"The submission is {status.value}; its report comes when it is done. Ask again in a moment."


def not_regraded(status: Status) -> str:
    if status is Status.CANCELLED:
        return "This submission was cancelled, so it is not graded again. It can be submitted again."
    return f"A run of this submission is {status.value}. Wait until it has ended, then ask again."


def ended(status: Status) -> str:
    return f"Nothing is left to cancel: this submission's grading has ended, it is {status.value}."


def answers(name: str) -> str:
    return f"{name}: it answers"


def silent(name: str, error: str) -> str:
    return f"{name}: it does not answer ({error})"


def workers_ready(ready: int, alive: int) -> str:
    if not alive:
        return "none is running, so nothing is graded; start one with 'autograder worker'"
    return f"{ready} of {alive} ready"


def nothing_lacks(ready: int) -> str:
    return "in use" if ready else "no worker has tried it yet"


def disk_state(free: int, least: int) -> str:
    return f"{free // 2**20} MiB are free, at least {least // 2**20} MiB must be"


def queue_state(count: int, oldest_seconds: float) -> str:
    return f"{count} wait, the oldest for {oldest_seconds:.0f} s" if count else "nothing waits"


def units_state(count: int) -> str:
    return f"{count} units"


def metrics_closed(role: Role) -> str:
    return f"Figures are for the token of AUTOGRADER_METRICS_TOKEN and administrators; yours has the role {role.value}."


def part_missing(part: str, error: str) -> str:
    return f"{part}: {error}"


def memory_short(free: int, needed: int) -> str:
    return (
        f"memory: a submission waits because {free // 2**20} MiB are free and {needed // 2**20} MiB are needed for its "
        "sandbox; stop what else uses memory, or lower AUTOGRADER_SLOTS"
    )


# -- course offerings, deadlines, attempts ----------------------------------------------------------------------------

TIME_UNREADABLE = (
    "Write a time as 2026-10-25T23:59 (on the clocks of the course's time zone) or with an offset, as "
    "2026-10-25T23:59+02:00 or 2026-10-25T21:59Z."
)
TIMES_DISORDERED = "The times must follow one another: opens_at, then due_at, then closes_at."
EXTENSION_UNKNOWN = "This student has no extension for this unit."
COURSE_ID_INVALID = "A course's id is made of letters, digits, '.', '_' and '-', at most 64, a letter or digit first."
STUDENT_MISSING = "Say whose grades: add ?student=NAME. Without it this is for students' own tokens."
EXTENSION_EMPTY = "An extension needs at least one of due_at, closes_at and extra_attempts."


def time_skipped(text: str, zone: str, earlier: datetime, later: datetime) -> str:
    return (
        f"{_shown(text)} does not exist in {zone}: the clocks go forward over it. "
        f"Write {earlier.isoformat()} or {later.isoformat()}."
    )


def time_repeated(text: str, zone: str, earlier: datetime, later: datetime) -> str:
    return (
        f"{_shown(text)} comes twice in {zone}: the clocks go back over it. "
        f"Say which: {earlier.isoformat()} or {later.isoformat()}."
    )


def zone_unknown(name: str) -> str:
    return f"There is no time zone {_shown(name)}. Use an IANA name such as Europe/Berlin or UTC."


def offering_unknown(course: str) -> str:
    return f"There is no course {_shown(course)}; see /v1/courses."


def course_archived(course: str) -> str:
    return f"The course {_shown(course)} has ended and takes no more submissions. Name the current one in 'course'."


def not_open_yet(opens: datetime, zone: str) -> str:
    return f"This unit opens on {_time(opens)} ({zone}). Submit it then; 'autograder grade' tries it before."


def closed(closed: datetime, zone: str) -> str:
    return (
        f"This unit closed on {_time(closed)} ({zone}) and takes no more submissions. "
        "If you need more time, ask the course staff for an extension."
    )


def attempts_used_up(attempts: int) -> str:
    return (
        f"All your attempts at this unit ({attempts}) are used; what you submitted counts. "
        "Only the course staff can give you more."
    )


def too_many_per_hour(most: int, seconds: float) -> str:
    return f"At most {most} submissions of this unit an hour. The next is possible in {_duration(seconds)}."


def cooling_down(pause_seconds: float, seconds: float) -> str:
    pause, left = _duration(pause_seconds), _duration(seconds)
    return f"Between two attempts at this unit lie {pause}. The next is possible in {left}."


def _time(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M")


def _duration(seconds: float) -> str:
    """Rounded up, so that nobody comes back too early."""
    whole = math.ceil(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes = math.ceil(whole / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


# -- hints ------------------------------------------------------------------------------------------------------------

HINTS_NOT_NEWEST = (
    "Hints are unlocked for your newest graded submission only, and this is an older one. What you have unlocked stays."
)
HINTS_NO_STUDENT = (
    "This submission is no student's, so there is nobody to unlock a hint for. Its report shows all hints."
)


def mutant_unknown(mutant: str) -> str:
    return f"This unit has no mutant {mutant}."


def mutant_not_surviving(mutant: str) -> str:
    return f"There is nothing to hint at: {mutant} did not survive the tests of this submission."


def no_more_hints(mutant: str, count: int) -> str:
    return f"{mutant} has no more hints than {count}, and you have them all."


def hint_out_of_turn(mutant: str, following: int) -> str:
    return f"Hints are unlocked one after the other; the next one of {mutant} is number {following}."


def hint_locked(mutant: str, number: int) -> str:
    return f"Hint {number} of {mutant} is not unlocked, or there is none."


def rating_of_staff(role: Role) -> str:
    return f"Students rate hints; your token has the role {role.value}."


def hints_used_up(most: int) -> str:
    if not most:
        return "In this course there are no hints at this unit beyond those in the report."
    return f"All hints that you may unlock at this unit ({most}) are used; those that you have stay."


def too_many_hints_per_hour(most: int, seconds: float) -> str:
    return f"At most {most} hints of this unit an hour. The next is possible in {_duration(seconds)}."


def hint_cooling_down(pause_seconds: float, seconds: float) -> str:
    pause, left = _duration(pause_seconds), _duration(seconds)
    return f"Between two hints lie {pause}: try what the last one says. The next is possible in {left}."


# -- the command line ------------------------------------------------------------------------------------------------

NOT_ISOLATED = "Warning: --sandbox process runs what is submitted without isolation."
ROLE_AND_STUDENT = "--role student needs --student NAME, and the other roles take none."
DEV_TOKEN_TAKEN = "--dev-token is the token of another account; choose another."


def course_tree_missing(folder: Path) -> str:
    return f"There is no course tree at {folder}; name one with --course."


def serving(url: str) -> str:
    return f"Serving at {url}"


def not_ready(lacks: str) -> str:
    return f"Not ready yet: {lacks}"


def new_database(folder: Path) -> str:
    return (
        f"There was no database in {folder}, so a new one was made. The service must be started with the same --data."
    )


def token_unknown(token_id: str) -> str:
    return f"There is no token {token_id}; see 'autograder token list'."


NO_DATABASE = (
    "There is no database of the service here. Name its directory with --data, or set AUTOGRADER_DATABASE_URL."
)


def backup_made(file: Path, schema: str, row_count: int, byte_count: int) -> str:
    return f"{file}: {row_count} rows of schema {schema}, {byte_count} bytes. It holds secrets: keep it to yourself."


def backup_restored(file: Path, row_count: int) -> str:
    return f"Restored {row_count} rows from {file}. Start the service; what was not graded yet is graded then."


def backup_damaged(file: Path) -> str:
    return f"{file} is no complete backup: it was cut off or changed. Nothing was restored; take another copy."


def backup_newer(file: Path, found: str, known: str) -> str:
    return (
        f"{file} was made by a newer version ({found}; this one knows up to {known}). Nothing was restored; install "
        "that version first."
    )


def backup_does_not_fit(file: Path, reason: str) -> str:
    return f"{file} holds a row that this database does not take. Nothing was restored. {reason}"


def database_used(table: str) -> str:
    return (
        f"The database is not empty ({table} has rows). Nothing was restored; name a new one with --data or "
        "AUTOGRADER_DATABASE_URL, and restore before the service is first started."
    )


def swept(submission_count: int, blob_count: int, key_count: int) -> str:
    return f"Gone: {submission_count} submissions, {blob_count} files nobody names, {key_count} keys of requests."


def grades_written(file: Path, row_count: int) -> str:
    return f"{file}: {row_count} grades"


def erase_question(student: str, count: int) -> str:
    return f"Erase {_shown(student)}, with {count} submissions and their grades? There is no way back."


def erased(pseudonym: str, submission_count: int, token_count: int, blob_count: int) -> str:
    return (
        f"Erased: {submission_count} submissions, {blob_count} files that nobody else had sent; {token_count} tokens "
        f"revoked. The audit log calls the student {pseudonym} from now on. Backups made before still hold the student."
    )


def exported(file: Path, submission_count: int) -> str:
    return f"{file}: {submission_count} submissions"


def admin_token(secret: str) -> str:
    return f"Administrator's token, shown this once: {secret}"


def _shown(text: str) -> str:
    """Text from outside in quotes, cut, with odd characters escaped."""
    return repr(text[:80])
