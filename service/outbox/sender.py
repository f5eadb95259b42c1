"""Deliveries that wait go in; every target is told of its own, one message after the other, until `stop` is set.

A target has one sender at a time, by a lease in the database that is renewed with every message; targets do not wait
for one another. (docs/decisions/0202)
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import sqlalchemy as sa

from service.database import AWAY, reading, writing
from service.outbox import deliveries
from service.outbox.backoff import Kind
from service.outbox.changes import Channel
from service.outbox.channels import Sending
from service.outbox.deliveries import Target

log = logging.getLogger(__name__)

LEASE_SECONDS = 60.0  # longer than a message may take
LOOK_SECONDS = 1.0  # between two looks for what waits
AT_ONCE = 8  # targets
OUR_FAILURE_SECONDS = 60.0  # for which a target is left alone after a mistake of ours
SWEEP_SECONDS = 3_600.0
KEEP_SECONDS = 30 * 86_400.0  # callbacks that have ended


class Sender:
    """Tells `channels` what waits for them. `name` is its own: two live ones of one name would send twice."""

    def __init__(
        self,
        engine: sa.Engine,
        channels: Mapping[Channel, Sending],
        *,
        name: str,
        stop: threading.Event,
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self._engine = engine
        self._channels = channels
        self._name = name
        self._stop = stop
        self._clock = clock
        self._chance = chance
        self._lease_seconds = lease_seconds
        self._lock = threading.Lock()
        self._at: set[Target] = set()
        self._left_alone: dict[Target, float] = {}  # until when, on time.monotonic()

    def run(self, look_seconds: float = LOOK_SECONDS) -> None:
        """Send until told to stop; then end what is under way."""
        sweep_at = 0.0
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="sender") as pool:
            while not self._stop.is_set():
                try:
                    for target in self._due():
                        pool.submit(self._drain, target)
                    if time.monotonic() >= sweep_at:
                        self._sweep()
                        sweep_at = time.monotonic() + SWEEP_SECONDS
                except AWAY as error:
                    log.warning("the database does not answer: %s", error)
                self._stop.wait(look_seconds)
        try:
            with writing(self._engine) as connection:
                deliveries.let_go(connection, self._name)
        except AWAY as error:
            log.warning("the database does not answer: %s", error)

    def send_all(self) -> None:
        """Send everything that is due, in this thread."""
        for target in self._due():
            self._drain(target)

    def _due(self) -> list[Target]:
        """What is to be begun now: nobody is at it."""
        with reading(self._engine) as connection:
            found = deliveries.due(connection, self._name, self._clock())
        now = time.monotonic()
        with self._lock:
            begun = [each for each in found if each not in self._at and self._left_alone.get(each, 0.0) <= now]
            begun = [each for each in begun if each.channel in self._channels]
            self._at.update(begun)
        return begun

    def _drain(self, target: Target) -> None:
        try:
            while not self._stop.is_set() and self._step(target):
                pass
        except AWAY as error:
            log.warning("the database does not answer: %s", error)
        except Exception:
            log.exception("telling %s %s failed on our side; it is tried again", target.channel.value, target.name)
            self._left_alone[target] = time.monotonic() + OUR_FAILURE_SECONDS
        finally:
            with self._lock:
                self._at.discard(target)

    def _step(self, target: Target) -> bool:
        """Send the next message to the target; whether there may be more."""
        channel = self._channels[target.channel]
        with writing(self._engine) as connection:
            step = deliveries.claim(connection, target, channel, self._name, self._clock(), self._lease_seconds)
        if step.claimed is None:
            return step.more
        outcome = channel.send(step.claimed, self._clock())
        with writing(self._engine) as connection:
            state = deliveries.settle(connection, step.claimed, outcome, self._clock(), self._chance())
        if outcome.kind is not Kind.ARRIVED:
            log.warning(
                "delivery %s to %s %s: %s, %s",
                *(step.claimed.delivery.id, target.channel.value, target.name),
                *(outcome.message or outcome.status, state.value if state is not None else "gone"),
            )
        return step.more

    def _sweep(self) -> None:
        with writing(self._engine) as connection:
            deliveries.sweep(connection, self._clock() - KEEP_SECONDS)
