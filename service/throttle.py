"""The address that a request of nobody's comes from goes in; how long it has to wait, if it asks too often, comes out.

Whoever is not signed in may begin logins, launches and registrations, each of which writes or computes something. A
class comes from behind one address, so the limit is for floods and not for people. It is counted in this process's
memory, which is bounded as well: that a restart forgets it does no harm. Guesses at passwords are counted for
themselves, in the database (service/people/sign_in.py).
"""

import threading
from collections import OrderedDict, deque
from ipaddress import ip_address, ip_network

MOST = 600  # requests of one address within the window
WINDOW_SECONDS = 60.0
MOST_ADDRESSES = 10_000


class Throttle:
    """Counts requests by address."""

    def __init__(self, most: int = MOST, window_seconds: float = WINDOW_SECONDS) -> None:
        self._most = most
        self._window_seconds = window_seconds
        self._seen: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait_seconds(self, address: str, now: float) -> float:
        """Count a request; 0 if it may go on. One that may not is not counted."""
        network = network_of(address)
        with self._lock:
            times = self._seen.setdefault(network, deque())
            self._seen.move_to_end(network)
            if len(self._seen) > MOST_ADDRESSES:
                self._seen.popitem(last=False)
            while times and times[0] <= now - self._window_seconds:
                times.popleft()
            if len(times) >= self._most:
                return times[0] + self._window_seconds - now
            times.append(now)
            return 0.0


def network_of(address: str) -> str:
    """What is one's own of an address: of IPv6 the half that a provider gives to a household."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    return str(ip_network(f"{found}/64", strict=False)) if found.version == 6 and not found.scope_id else address
