"""The clients of a Memcached that changes its size: what they see, and what it costs them."""

import threading
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final

from support import kube
from support.clients import in_threads
from support.connections import Seen, connected
from support.kube import eventually, must_get
from support.load import Load, fill, load
from support.memcached import wait_until_ready
from support.resizing.changes import PROXIES, Change, Changes, cache, proxy, recorded
from support.scaling.checker import Checker, checking
from support.waiting import READY

PERIOD: Final = 0.05
"""Seconds between two requests of a connection."""
ITEMS: Final = [f"item-{number}" for number in range(2000)]
RATE: Final = 200
"""Reads of items per second."""
REFRESH: Final = 5.0
"""Seconds after which all items are stored again."""
FRESH: Final = 0.005
"""The share of requests with a connection of their own. With many, ports are used again within the 120 s for which a
node remembers a connection, and which pod of the Service it went to."""
LOOK: Final = 0.1
"""Seconds between two looks at the changes."""
Figures = Callable[[str, object], None]


@dataclass(frozen=True)
class Clients:
    """Clients of all kinds. `checker`: for what reads return. `connections`: for resets and errors.

    `items`: the hits of items that are stored again and again.
    """

    changes: Changes
    checker: Checker
    connections: Sequence[Seen]
    items: Load

    @property
    def change(self) -> Change:
        """The last change of size."""
        return self.changes()[-1]

    def closed(self, ended: float, *, refused: bool = False) -> list[Counter[str]]:
        """How often each connection was closed in each phase of the last change, which ended at this time.

        `refused`: how often it could not be opened.
        """
        begun, phase_at = self.change.since["Wait"], self.change.phase_at
        return [
            Counter(
                phase_at(each.at)
                for each in seen.failures
                if not each.answer and each.refused is refused and begun <= each.at < ended
            )
            for seen in self.connections
        ]

    def errors(self) -> list[tuple[float, bytes]]:
        """The times and texts of errors as answers to `connections`."""
        return [(each.at, each.answer) for seen in self.connections for each in seen.errors]

    def ratio(self, since: float, until: float) -> float:
        """The hit ratio of the items between two times, from 0 to 1."""
        first, last = (int(at - self.items.started) for at in (since, until))
        found = self.items.ratio(first, last + 1)
        assert found is not None, "no item was read"
        return found

    def record(self, figures: Figures, ended: float) -> dict[str, float]:
        """Record the figures of the last change, which ended at this time; returns the hit ratio in each phase."""
        change = self.change
        starts = [*change.since.items(), ("", ended)]
        spans = {phase: (start, end) for (phase, start), (_, end) in pairwise(starts)}
        times = ", ".join(f"{phase} {end - start:.0f}" for phase, (start, end) in spans.items())
        name, begun = f"{change.source} → {change.target}", starts[0][1]
        figures(f"{name}, seconds", f"{ended - begun:.0f}: {times}")
        ratios = {phase: self.ratio(*span) for phase, span in {"before": (begun - 5, begun - 1), **spans}.items()}
        figures(f"{name}, hit ratio", ", ".join(f"{phase} {ratio:.3f}" for phase, ratio in ratios.items()))
        resets = sum(self.closed(ended), Counter[str]())
        refused = sum(self.closed(ended, refused=True), Counter[str]())
        figures(
            f"{name}, closed and refused connections of {len(self.connections)}", f"{dict(resets)}, {dict(refused)}"
        )
        return ratios


@contextmanager
def served(namespace: str, size: int, duration: str) -> Generator[Clients]:
    """Clients of two proxies and of a Memcached, which are ready, during the block."""
    kube.apply(cache(namespace, size, duration))
    kube.apply(proxy(namespace))
    wait_until_ready(namespace)
    wait_until_ready(namespace, "front", plural=PROXIES)
    address = must_get("services", namespace, "front")["spec"]["clusterIP"]
    eventually(partial(_fills, address), READY, "the proxies reach all slots")
    with (
        recorded(namespace) as changes,
        checking([(address, 11211)], fresh=FRESH) as checker,
        connected(address, PERIOD) as connections,
        load([address], ITEMS, RATE) as items,
        in_threads(partial(_refresh, address), partial(_follow, changes, checker)),
    ):
        yield Clients(changes, checker, connections, items)


def _fills(address: str) -> bool:
    """Store all items; returns whether no connection was closed, and no error was the answer."""
    try:
        fill([address], ITEMS)
    except (OSError, AssertionError):
        return False
    return True


def _refresh(address: str, stop: threading.Event) -> None:
    """Store all items again and again, and at once if that has failed."""
    pause = REFRESH
    while not stop.wait(pause):
        pause = REFRESH if _fills(address) else LOOK


def _follow(changes: Changes, checker: Checker, stop: threading.Event) -> None:
    """Report to the checker from when on items are kept, and when the others may be lost."""
    moving, finishing = 0, 0
    while not stop.wait(LOOK):
        found = changes()
        if moving < (now := sum(each.moving is not None for each in found)):
            moving = now
            checker.moving()
        if finishing < (now := sum("Finish" in each.since for each in found)):
            finishing = now
            checker.finishing()
