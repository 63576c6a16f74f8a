"""The sweep of all slots: one attempt after the other, in rounds, until each slot is done or the time is over."""

import random
import time
from collections.abc import Callable, Sequence
from typing import Final

from memcached_agent.sweep.connection import Deadline, SlotError, TimeIsUpError
from memcached_agent.sweep.slot import Change, Slot

MIN_DELAY: Final = 0.1
MAX_DELAY: Final = 2.0
"""Seconds between two rounds: doubled after each in which no slot was done, and chosen at random between a half and all
of it."""


def sweep(slots: Sequence[Slot], change: Change, deadline: Deadline, log: Callable[[str], None]) -> bool:
    """Sweep all slots; returns whether all are done. `log` gets a line for each new problem of a slot.

    The order is random: several sweeps of a change share the work. Slots take turns, because hashes of keys need the
    processor: a slot that is done stays done if the time is over.
    """
    delay, logged = MIN_DELAY, set[str]()
    try:
        while left := [slot for slot in slots if not slot.done]:
            for slot in random.sample(left, len(left)):
                _attempt(slot, change, deadline, log, logged)
            if any(slot.done for slot in left):
                delay = MIN_DELAY
            if not all(slot.done for slot in left):
                time.sleep(deadline.wait(random.uniform(delay / 2, delay)))  # noqa: S311 - not a secret
                delay = min(2 * delay, MAX_DELAY)
    except TimeIsUpError:
        return False
    return True


def _attempt(slot: Slot, change: Change, deadline: Deadline, log: Callable[[str], None], logged: set[str]) -> None:
    try:
        slot.sweep(change, deadline)
    except SlotError as error:
        slot.problem = str(error)
        line = f"{slot} {slot.problem}. The sweep tries again"
        if line not in logged:
            logged.add(line)
            log(line)


def success(slots: Sequence[Slot], seconds: float) -> str:
    """The last line of the log when all slots are done."""
    removed, skipped = sum(slot.removed for slot in slots), sum(slot.skipped for slot in slots)
    return f"{len(slots)} slots are swept ({skipped} were before): {removed} items removed in {seconds:.1f} s"


def failure(slots: Sequence[Slot], seconds: float) -> str:
    """The last line of the log when the time is over: a slot that is not done, the cause, and which others are left."""
    first, *others = sorted((slot for slot in slots if not slot.done), key=lambda slot: (not slot.problem, slot.number))
    cause = first.problem or f"is not swept yet: {first.keys} keys were read"
    rest = f". Other slots that are not swept: {', '.join(str(slot.number) for slot in others)}" if others else ""
    return f"{first} {cause}. The sweep has failed after {seconds:g} s{rest}"
