"""The roles that a platform says a person has go in; ours within that course comes out, or None: no business here."""

from collections.abc import Iterable

from service.accounts import Role

_MEMBERSHIP = "http://purl.imsglobal.org/vocab/lis/v2/membership"
_INSTITUTION = "http://purl.imsglobal.org/vocab/lis/v2/institution/person#"
_SYSTEM = "http://purl.imsglobal.org/vocab/lis/v2/system/person#"

_STAFF = frozenset(_MEMBERSHIP + name for name in ("#Instructor", "#Administrator")) | {"Instructor", "Administrator"}
_ASSISTANTS = frozenset(
    f"{_MEMBERSHIP}/Instructor#{name}"
    for name in (
        *("TeachingAssistant", "TeachingAssistantGroup", "TeachingAssistantOffering", "TeachingAssistantSection"),
        *("TeachingAssistantSectionAssociation", "TeachingAssistantTemplate", "Grader"),
    )
) | {f"{_MEMBERSHIP}#TeachingAssistant", "TeachingAssistant"}
_LEARNERS = frozenset(_MEMBERSHIP + name for name in ("#Learner", "#Member")) | {"Learner", "Student"}
_OTHERS = frozenset(_MEMBERSHIP + name for name in ("#Mentor", "#ContentDeveloper", "#Manager", "#Officer"))

# Outside any course: they count only where the person has no role in the course itself.
_STAFF_AT_LARGE = frozenset(
    (*(_INSTITUTION + name for name in ("Administrator", "SysAdmin")), _SYSTEM + "Administrator", _SYSTEM + "SysAdmin")
)


def ours(said: Iterable[str]) -> Role | None:
    """An assistant reads, whether or not the platform also calls them an instructor, as Canvas does. Whoever
    administers the whole platform teaches where they have no other role; a student who is staff elsewhere does not.

    Nobody is an administrator of ours by what a platform says.
    """
    roles = {role for role in said if isinstance(role, str)}
    if roles & _ASSISTANTS:
        return Role.GRADER
    if roles & _STAFF or any(role.startswith(f"{_MEMBERSHIP}/Instructor#") for role in roles):
        return Role.TEACHER
    if roles & _LEARNERS or any(role.startswith(f"{_MEMBERSHIP}/Learner#") for role in roles):
        return Role.STUDENT
    if roles & _OTHERS:
        return None
    return Role.TEACHER if roles & _STAFF_AT_LARGE else None
