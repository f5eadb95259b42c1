"""The fields of a submission's form go in; whom it is for, and what intake makes of its files, come out, or Problem."""

from dataclasses import dataclass

from grader.deps import ALL, ref_deps
from grader.digest import digest_of
from grader.errors import Rejected
from grader.intake import take_in
from grader.submission import TEXT_FIELDS, Submission, Upload
from grader.unit import Unit
from grader.wording import REF_DEPS_INVALID
from service import wording
from service.accounts import Account, Role
from service.outbound import Reach, Unreachable
from service.outbox import wording as sentences
from service.people.wording import GRADER_CHANGES_NOTHING
from service.problems import Problem
from service.upload import Form

NAME_CHARS = 128
CALLBACK_CHARS = 2000
REF_DEPS_CHARS = 1000
STORABLE = r"^[^\x00]*$"  # PostgreSQL refuses to compare a NUL
DEFAULT_COURSE = "default"


@dataclass(frozen=True)
class Post:
    """What was sent, as far as it can be told without the database. `named` is the student's name in the form,
    `callback` where its sender wants to be told of the end."""

    unit: Unit
    submission: Submission
    course: str
    named: str
    callback: str = ""
    ref_deps: str = ALL

    @property
    def fingerprint(self) -> str:
        """The same for the same fields and files, however the files were packed."""
        parts = {"unit": self.unit.id, "course": self.course, "student": self.named, "files": self.submission.digest}
        if self.callback:
            parts["callback"] = self.callback
        if self.ref_deps != ALL:
            parts["ref_deps"] = self.ref_deps
        return digest_of((name, text.encode()) for name, text in parts.items())

    @property
    def fields(self) -> dict[str, str]:
        """The text fields with which the same is sent again."""
        course = "" if self.course == DEFAULT_COURSE else self.course
        deps = "" if self.ref_deps == ALL else self.ref_deps
        fields = (("student", self.named), ("course", course), ("callback", self.callback), ("ref_deps", deps))
        return {name: text for name, text in fields if text}


def read(unit: Unit, form: Form, curl: str) -> Post:
    """What the form holds; raises Problem 422."""
    named, course = one_field(form, "student"), one_field(form, "course") or DEFAULT_COURSE
    callback = one_field(form, "callback", CALLBACK_CHARS)
    deps = one_field(form, "ref_deps", REF_DEPS_CHARS) or ALL
    try:
        ref_deps(deps)
    except ValueError as error:
        raise Problem(422, "invalid_field", REF_DEPS_INVALID) from error
    return Post(unit, taken_in(unit, form, curl), course, named, callback, deps)


def check_callback(account: Account, student: str | None, callback: str, reach: Reach) -> None:
    """Raises Problem 403 or 422 if the sender cannot be called back there."""
    if not callback:
        return
    if account.role is not Role.LMS:
        raise Problem(403, "role_missing", sentences.callback_of_role(account.role))
    if student is None:
        raise Problem(422, "student_missing", sentences.CALLBACK_WITHOUT_STUDENT)
    try:
        reach.check_url(callback)
    except Unreachable as error:
        raise Problem(422, "callback_refused", sentences.callback_refused(str(error))) from error


def student(account: Account, name: str) -> str | None:
    """Whom the submission is for; `name` is the form's, `account` as it stands in the course.

    Raises Problem 403 if that is not the caller's to say."""
    if account.role is Role.GRADER:
        raise Problem(403, "role_missing", GRADER_CHANGES_NOTHING)
    named = name or None
    if account.names_students:
        return named
    if named not in (None, account.student):
        raise Problem(403, "student_mismatch", wording.STUDENT_MISMATCH)
    return account.student


def one_field(form: Form, name: str, most_chars: int = NAME_CHARS) -> str:
    """The field's only value, '' without one; raises Problem 422 for a file, several values or odd characters."""
    if name in form.files:
        raise Problem(422, "field_is_file", wording.field_is_file(name))
    values = form.fields.get(name, ())
    if len(values) > 1:
        raise Problem(422, "repeated_field", wording.field_repeated(name))
    value = values[0].strip() if values else ""
    if len(value) > most_chars or not value.isprintable():
        raise Problem(422, "invalid_field", wording.field_invalid(name, most_chars))
    return value


def _by_stem(unit: Unit, form: Form) -> Form:
    """The form with the files of fields that are named by an alias under the name they stand for."""
    files: dict[str, tuple[Upload, ...]] = {}
    for name, uploads in form.files.items():
        stem = unit.stem_of(name)
        files[stem] = (*files.get(stem, ()), *uploads)
    return Form(files, form.fields)


def taken_in(unit: Unit, form: Form, curl: str) -> Submission:
    """The unit's files and the tests as intake accepts them; raises Problem 422, with the command that would do."""
    stems = [file.stem for file in unit.files]
    form = _by_stem(unit, form)
    for name in (*stems, "tests"):
        if name in form.fields:
            raise Problem(422, "file_as_text", wording.file_as_text(name), curl=curl)
    missing = [name for name in (*stems, "tests") if not form.files.get(name)]
    if missing:
        code = "no_tests_sent" if missing == ["tests"] else "missing_file"  # as intake names them
        raise Problem(422, code, wording.file_missing(missing, curl), curl=curl)
    unknown = set(form.files) - {*stems, *unit.dep_stems, "tests"} | set(form.fields) - set(TEXT_FIELDS)
    if unknown:
        raise Problem(422, "unknown_field", wording.field_unknown(sorted(unknown), curl), curl=curl)
    sent = [stem for stem in (*stems, *unit.dep_stems) if stem in form.files]
    for stem in sent:
        if len(form.files[stem]) > 1:
            raise Problem(422, "repeated_field", wording.field_repeated(stem), curl=curl)
    try:
        return take_in(unit, {stem: form.files[stem][0] for stem in sent}, form.files["tests"])
    except Rejected as error:
        raise Problem(422, error.code, error.message, path=error.path) from error
