"""Which requests a fault strikes, and for how long."""

import asyncio
import random
import time
from dataclasses import dataclass

from faults.calls import Call
from faults.faulty import FieldError


@dataclass(frozen=True)
class Rule:
    """Strike calls that match `what` and `name`, leaving the first `skip` alone: `times` times, or for `seconds`
    from the first one on; with neither, until the rule is lifted. `share` is the chance that one is struck."""

    what: str
    fault: FieldError
    times: int | None = None
    seconds: float | None = None
    skip: int = 0
    name: str = "*"
    share: float = 1.0


class Armed:
    """A rule in effect."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.hits = 0
        self.first = 0.0
        self.over = asyncio.Event()
        self._seen = 0

    def strikes(self, call: Call) -> bool:
        """Whether this call is struck; counts it, if so."""
        rule = self.rule
        if self.over.is_set() or not call.matches(rule.what, rule.name):
            return False
        self._seen += 1
        if self._seen <= rule.skip or random.random() >= rule.share:  # noqa: S311 - chance, not a secret
            return False
        self.hits += 1
        if self.hits == 1:
            self.first = time.monotonic()
            if rule.seconds is not None:
                asyncio.get_running_loop().call_later(rule.seconds, self.over.set)
        if self.hits == rule.times:
            self.over.set()
        return True

    def lift(self) -> None:
        """End it."""
        self.over.set()
