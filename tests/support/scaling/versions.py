"""What reads of a key with one writer may return. Each value contains the number of its write; numbers rise.

A write is acknowledged, refused (its condition was not met, and nothing has changed) or failed (it may have happened).
"""

import time
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

EARLY: Final = 2.2
"""Seconds before its expiration from which an item may be missing: servers count whole seconds, and start late."""
LATE: Final = 3.2
"""Seconds after its expiration from which an item must be missing."""

Kind = Literal["short", "long", "base64", "counter", "expiring"]
Reading = Literal["hit", "miss", "false miss", "stale", "resurrected", "late", "expired"]


class State(NamedTuple):
    """What is known of a key. `floor`: the lowest number that a read may return, and 0 before the first write.

    `number`: of the last write that was sent. `deleted`: whether the last acknowledged write was a deletion. `sure`:
    whether no write has been sent or has failed since then. `expires`: when the item does, in seconds of the monotonic
    clock; 0 for never. `placed`: when the last set or add was sent: other writes leave an item where it is.
    """

    floor: int = 0
    number: int = 0
    deleted: bool = True
    sure: bool = False
    expires: float = 0
    placed: float = 0

    def exists(self, now: float) -> bool:
        """Whether the key has an item for certain, unless servers have lost it."""
        return self.sure and not self.deleted and (not self.expires or now < self.expires - EARLY)

    def is_absent(self) -> bool:
        """Whether the key has no item for certain."""
        return self.sure and self.deleted

    def sent(self) -> "State":
        """The state while a write is under way, and after one that failed."""
        return self._replace(number=self.number + 1, sure=False)

    def acknowledged(self, *, expires: float, placed: float) -> "State":
        """The state after the write that was sent last was acknowledged."""
        return State(self.number, self.number, False, True, expires, placed)

    def removed(self) -> "State":
        """The state after the write that was sent last was acknowledged: a deletion."""
        return State(self.number, self.number, True, True)


@dataclass
class Key:
    """A key. Only its writer replaces `state`, so a read that finds the same one before and after had no write beside.

    `failed`: numbers of writes that failed. A server that was stopped executes them when it continues.
    """

    name: bytes
    kind: Kind
    state: State = field(default_factory=State)
    failed: set[int] = field(default_factory=set[int])

    @property
    def flag(self) -> bytes:
        """The flag of meta commands for a key in base64."""
        return b" b" if self.kind == "base64" else b""

    def classify(self, before: State, value: bytes | None, lost_before: float) -> Reading:
        """The reading of a read that began in a state. Items placed before `lost_before` may be missing."""
        now, unchanged = time.monotonic(), self.state is before
        if value is None:
            missing = unchanged and before.exists(now) and before.placed >= lost_before
            return "false miss" if missing else "miss"
        number = number_of(value)
        if number < before.floor:
            return "late" if number in self.failed else "resurrected" if before.deleted else "stale"
        expired = unchanged and before.sure and before.expires and now > before.expires + LATE
        return "expired" if expired else "hit"


def number_of(value: bytes) -> int:
    """The number of the last write in a value: of parts `NUMBER:PADDING`, separated by `|`."""
    return max(int(part.partition(b":")[0]) for part in value.strip().split(b"|") if part)
