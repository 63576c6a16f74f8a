"""Rules: into which requests a fault is injected, and for how long."""

import asyncio
import random
import time
from dataclasses import dataclass

from faults.calls import Call
from faults.faulty import Fault


@dataclass(frozen=True)
class Rule:
    """Inject a fault into calls that match `what` and `name`, after the first `skip` ones.

    `times`: into this many calls. `seconds`: for this long, from the first one on. With neither: until it is stopped.
    `share`: the probability for each call.
    """

    what: str
    fault: Fault
    times: int | None = None
    seconds: float | None = None
    skip: int = 0
    name: str = "*"
    share: float = 1.0


class ActiveRule:
    """An active rule."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.hits = 0
        self.first = 0.0
        self.done = asyncio.Event()
        self._seen = 0

    def applies(self, call: Call) -> bool:
        """Whether the fault applies to this call; counts it if so."""
        rule = self.rule
        if self.done.is_set() or not call.matches(rule.what, rule.name):
            return False
        self._seen += 1
        if self._seen <= rule.skip or random.random() >= rule.share:  # noqa: S311 - not a secret
            return False
        self.hits += 1
        if self.hits == 1:
            self.first = time.monotonic()
            if rule.seconds is not None:
                asyncio.get_running_loop().call_later(rule.seconds, self.done.set)
        if self.hits == rule.times:
            self.done.set()
        return True

    def stop(self) -> None:
        """Stop injecting the fault."""
        self.done.set()
