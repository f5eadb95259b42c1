"""Who wants to hand over a link, and for whom, goes in; whether they may comes out.

Whoever holds a link becomes that person. A teacher therefore makes links only for people who are in no course
but the teacher's own ones, and for another teacher only before that one has set a password. Nor is it enough to put
somebody into one's course who signs in already: such a person has to have begun here. (docs/decisions/0179)
"""

import sqlalchemy as sa

from service.accounts import Account, Role
from service.people import members
from service.people.users import User


def may_invite(connection: sa.Connection, account: Account, user: User) -> bool:
    """Whether this account, not narrowed to a course, may make a link for this person."""
    if account.role is Role.ADMIN:
        return True
    if user.admin:
        return False
    parts = members.of_user(connection, user.id)
    began_here = any(part.since == user.created_at for part in parts)
    if user.has_password and not began_here:
        return False
    return bool(parts) and all(_is_below(account, part.course, part.role, user) for part in parts)


def _is_below(account: Account, course: str, role: Role, user: User) -> bool:
    within = account.within(course)
    if within is None or not within.changes_class:
        return False
    return role is not Role.TEACHER or not user.has_password
