"""What happened to a grade goes in, with the transaction in which it happened; learning platforms are told of it.

changes     a grade may have changed -> deliveries that wait, in the same transaction
score, webhook  what is told: a score as AGS has it, or a signed message; pure
signing     the secrets that sign messages
deliveries  the rows: claimed, stamped, settled, sent again, listed
backoff     what came of an attempt -> when the next one is due; pure
channels, platforms  a message -> the receiver's answer
sender, process  the process that tells them; the only one that does
routes, pages  what staff see of it
wording     every sentence of this package that a person reads
"""

from service.outbox.changes import connect, disconnect, expect, grade_changed, run_ended, unit_changed

__all__ = ["connect", "disconnect", "expect", "grade_changed", "run_ended", "unit_changed"]
