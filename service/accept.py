"""A form, read, and its sender go in; a submission that is stored and enqueued comes out, or the one it repeats.

    read the form -> who -> receipt -> Idempotency-Key -> room -> course, limits -> cache -> stored, enqueued

Whatever cannot be taken in raises Problem and leaves nothing behind. What was fine but came when there was no room, or
no database, gets a signed receipt of its time: sent again with that, it counts as received then.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import sqlalchemy as sa

from grader import deps
from grader.errors import Rejected
from grader.unit import Unit
from service import (
    accounts,
    bells,
    cache,
    idempotency,
    limits,
    offerings,
    outbox,
    posted,
    pressure,
    submissions,
    wording,
)
from service.accounts import Account
from service.answers import moment
from service.database import AWAY, reading, writing
from service.dependencies import Sender, Service, token_invalid
from service.idempotency import Answered, Claim
from service.outbound import Reach
from service.people.wording import not_enrolled
from service.posted import Post
from service.pressure import Closed
from service.problems import Problem
from service.receipts import MAX_CHARS, BadReceipt, Receipt
from service.submissions import Stored
from service.upload import Form


@dataclass(frozen=True)
class Posting:
    """What comes with a form: its Idempotency-Key and its receipt, '' without one, and the service's own address."""

    key: str = ""
    receipt: str = ""
    base_url: str = ""


@dataclass(frozen=True)
class Accepted:
    """What the answer is about, and for whom. `replayed`: it was accepted before, with the same Idempotency-Key."""

    stored: Stored
    account: Account
    replayed: bool = False


class Refused(Exception):
    """There is no room for it now."""

    def __init__(self, closed: Closed) -> None:
        super().__init__(closed.code)
        self.closed = closed


def accept(service: Service, sender: Sender, unit: Unit, form: Form, posting: Posting) -> Accepted:
    """Raises Problem 400, 401, 403, 409, 422, 429, or 503 with a receipt."""
    now = service.clock()
    post = posted.read(unit, form, wording.curl(unit, posting.base_url))
    receipt = _receipt(service, sender, post, posting.receipt or posted.one_field(form, "receipt", MAX_CHARS), now)
    try:
        if isinstance(sender.account, Closed):
            raise Refused(sender.account)
        account = _within(sender.account, post.course)
        student = posted.student(account, post.named)
        posted.check_callback(account, student, post.callback, Reach.of_callbacks(service.settings))
        if receipt.token != sender.token:
            _check_holder(service, account, receipt)
        with _claimed(service, account, post, posting.key, now) as claim:
            if isinstance(claim, Answered):
                return Accepted(_answered(service, claim), account, replayed=True)
            received_at = min(receipt.received_at, now)  # the clock may have been set back
            return Accepted(_store(service, account, post, student, claim, received_at, now), account)
    except Refused as refused:
        raise _with_receipt(service, refused.closed, post, receipt, posting) from refused
    except AWAY as error:
        raise _with_receipt(service, pressure.of_database(error), post, receipt, posting) from error


def _within(account: Account, course: str) -> Account:
    found = account.within(course)
    if found is None:
        raise Problem(403, "not_enrolled", not_enrolled(course))
    return found


# -- receipts --------------------------------------------------------------------------------------------------------


def _receipt(service: Service, sender: Sender, post: Post, text: str, now: float) -> Receipt:
    """The receipt that was sent along, or one of now; raises Problem 422 for one that does not count."""
    if not text:
        return Receipt(post.fingerprint, sender.token, now)
    try:
        receipt = service.receipts.read(text)
    except BadReceipt as error:
        raise _refuse_receipt(wording.RECEIPT_UNREADABLE) from error
    if receipt.valid_until < now:
        raise _refuse_receipt(wording.receipt_expired(moment(receipt.valid_until)))
    if receipt.fingerprint != post.fingerprint:
        raise _refuse_receipt(wording.RECEIPT_OF_OTHER_FILES)
    return receipt


def _check_holder(service: Service, account: Account, receipt: Receipt) -> None:
    """A receipt counts for its token and for another one of the same student; else raises Problem 422."""
    with reading(service.engine) as connection:
        first = accounts.find_by_digest(connection, receipt.token)
    if first is None or account.student is None or first.student != account.student:
        raise _refuse_receipt(wording.RECEIPT_OF_OTHER_TOKEN)


def _refuse_receipt(reason: str) -> Problem:
    return Problem(422, "receipt_refused", wording.receipt_refused(reason))


def _with_receipt(service: Service, closed: Closed, post: Post, receipt: Receipt, posting: Posting) -> Problem:
    text = service.receipts.text(receipt)
    problem = closed.problem(wording.KEEP_RECEIPT)
    problem.headers["Submission-Receipt"] = text
    problem.more |= {
        "receipt": text,
        "received_at": moment(receipt.received_at).isoformat(),
        "receipt_valid_until": moment(receipt.valid_until).isoformat(),
        "retry_after_seconds": closed.retry_seconds,
        "curl": wording.curl(post.unit, posting.base_url, fields=post.fields | {"receipt": text}),
    }
    return problem


# -- Idempotency-Key -------------------------------------------------------------------------------------------------


@contextmanager
def _claimed(service: Service, account: Account, post: Post, key: str, now: float) -> Iterator[Claim | Answered | None]:
    """Hold the key while the submission is stored; a request that is refused frees it. None: there is no key."""
    if not key:
        yield None
        return
    if not idempotency.is_key(key):
        raise Problem(400, "idempotency_key_invalid", wording.idempotency_key_invalid(idempotency.KEY_CHARS))
    try:
        claim = idempotency.claim(service.engine, account.id, key, post.fingerprint, now)
        try:
            yield claim
        except BaseException:
            if isinstance(claim, Claim):
                _release(service.engine, claim)
            raise
    except idempotency.Mismatch as error:
        raise Problem(422, "idempotency_mismatch", wording.IDEMPOTENCY_MISMATCH) from error
    except idempotency.InFlight as error:
        retry = {"Retry-After": str(idempotency.RETRY_SECONDS)}
        raise Problem(409, "idempotency_in_flight", wording.IDEMPOTENCY_IN_FLIGHT, headers=retry) from error


def _release(engine: sa.Engine, claim: Claim) -> None:
    with suppress(*AWAY), writing(engine) as connection:  # it lapses by itself if that fails
        idempotency.release(connection, claim)


def _answered(service: Service, answered: Answered) -> Stored:
    with reading(service.engine) as connection:
        stored = submissions.find(connection, answered.submission)
    if stored is None:  # erased in this very moment
        raise Problem(404, "submission_unknown", wording.SUBMISSION_UNKNOWN)
    return stored


# -- one transaction -------------------------------------------------------------------------------------------------


def _store(
    service: Service,
    account: Account,
    post: Post,
    student: str | None,
    claim: Claim | None,
    received_at: float,
    now: float,
) -> Stored:
    """Store what was posted and enqueue it, or answer it from the cache; all or nothing."""
    with writing(service.engine) as connection:
        # An upload takes a while: the token may have been revoked, and its student erased, since it began.
        if not accounts.hold(connection, account.id, now):
            raise token_invalid()
        if offerings.find(connection, post.course) is None:
            raise Problem(422, "course_unknown", wording.course_unknown(post.course))
        _check_deps(connection, post, student)
        hit = _hit(service, connection, post, now)
        allowed = limits.check(
            connection,
            account,
            course=post.course,
            unit=post.unit.id,
            student=student,
            received_at=received_at,
            now=now,
            usual=limits.usual(service.settings),
            counted=hit is None or not _repeats(connection, post, student),
        )
        if closed := service.pressure.state(service.settings, connection):
            raise Refused(closed[0])
        stored = submissions.add(
            connection,
            service.queue if hit is None else None,
            post.submission,
            course=post.course,
            student=student,
            token=account.id,
            received_at=received_at,
            now=now,
            counted=allowed.counted,
        )
        if hit is not None:
            cache.answer(connection, stored, hit, now)
        _tell(connection, account, post, stored, now, ended=hit is not None)
        if claim is not None:
            idempotency.bind(connection, claim, stored.id)
    if hit is None:
        bells.queued(service.settings.data).ring()
    return stored


def _tell(connection: sa.Connection, account: Account, post: Post, stored: Stored, now: float, *, ended: bool) -> None:
    """Note who is to hear of the submission."""
    if stored.student is None:
        return
    here = {"course": stored.course, "unit": stored.unit, "student": stored.student}
    if post.callback:
        outbox.expect(connection, token=account.id, callback=post.callback, submission=stored.id, now=now, **here)
    # Platforms show that something waits; who asked to be called back knows that already.
    outbox.grade_changed(connection, **here, submission=stored.id if ended else "", now=now)


def _hit(service: Service, connection: sa.Connection, post: Post, now: float) -> cache.Hit | None:
    if not service.settings.cache:
        return None
    found = cache.find(connection, cache.of_workers(connection, now), post.unit.id, post.submission.digest)
    service.stats.count("cache", result="miss" if found is None else "hit")
    return found


def _repeats(connection: sa.Connection, post: Post, student: str | None) -> bool:
    return cache.sent_before(connection, post.course, post.unit.id, student, post.submission.digest)


def _check_deps(connection: sa.Connection, post: Post, student: str | None) -> None:
    """Raises Problem 422 if the submission lacks a unit that the sender wants to have been built."""
    allowed = deps.ref_deps(post.ref_deps)
    if allowed.every:
        return
    passed = submissions.passed_units(connection, post.course, student) if student is not None else ()
    try:
        deps.check(post.unit, post.submission, allowed, passed)
    except Rejected as error:
        raise Problem(422, error.code, error.message) from error
