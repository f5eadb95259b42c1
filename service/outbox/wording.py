"""What a delivery is about goes in; the sentence that a student, a teacher or an operator reads of it comes out."""

from service.accounts import Role

CALLBACK_WITHOUT_STUDENT = "Whoever wants to be called back names the student: add the field 'student'."
DELIVERY_UNKNOWN = "There is no such delivery, or it is not yours."
NO_ANSWER = "it did not answer in time"
REDIRECTS = "it redirects; give the address it redirects to"
PLATFORM_GONE = "this platform is no longer registered"
LATER_ONE_THERE = "the platform had this score, or a later one, already"


def callback_of_role(role: Role) -> str:
    return f"Only a learning platform's token may ask to be called back; this is a {role.value} token."


def callback_refused(reason: str) -> str:
    return f"This address cannot be called back: {reason}."


def not_https(host: str) -> str:
    return f"{host} is not asked by https; use https, or have the operator list it in AUTOGRADER_CALLBACK_HOSTS"


def not_an_address() -> str:
    return "it is not an http or https address with a host and without a user name"


def not_listed(host: str) -> str:
    return f"{host} is not in AUTOGRADER_CALLBACK_HOSTS"


def private(host: str) -> str:
    return f"{host} is not a public address; the operator can list it in AUTOGRADER_CALLBACK_HOSTS"


def not_found(host: str) -> str:
    return f"{host} has no address that can be found"


def answered(status: int) -> str:
    return f"it answered {status}"


def not_reached(error: str) -> str:
    return f"it could not be reached: {error}"
