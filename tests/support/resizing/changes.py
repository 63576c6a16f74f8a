"""A Memcached with real pods that changes its size in phases: what happens, and when."""

import json
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final

from support import kube
from support.kube import Object, eventually, items, must_get
from support.memcached import SMALL, memcached, wait_until_ready
from support.waiting import BUSY

PROXIES: Final = "memcachedproxies"
PHASES: Final = ("Wait", "Prepare", "Move", "Finish", "Plain")
ROLLOUTS: Final = PHASES[1:]
"""The phases that replace the pods of the proxies."""
CHANGE: Final = BUSY * 120.0
"""Seconds until a change of size is complete, without the duration of Move."""
MOVE: Final = "memcached-operator.example.com/move"
TIMES: Final = "memcached-operator.example.com/move-times"
"""The annotations of the StatefulSet with the state of the change, and with its times."""


def cache(namespace: str, size: int, duration: str) -> Object:
    """A Memcached whose size changes in phases."""
    fields: Object = {"identity": "Stable", "resources": SMALL, "cache": {"memory": "32Mi"}}
    return memcached(namespace, size=size, scaling={"warm": {"duration": duration}}, **fields)


def proxy(namespace: str, size: int = 2) -> Object:
    """A MemcachedProxy for it."""
    return {
        "apiVersion": "cache.example.com/v1alpha1",
        "kind": "MemcachedProxy",
        "metadata": {"name": "front", "namespace": namespace},
        "spec": {"memcachedRef": {"name": "cache"}, "size": size},
    }


@dataclass
class Change:
    """A change of size. `since`: the start of each phase. `moving`: when all proxies had Move; None before.

    Times are those of `time.monotonic`.
    """

    source: int
    target: int
    since: dict[str, float] = field(default_factory=dict[str, float])
    moving: float | None = None

    def phase_at(self, at: float) -> str:
        """The phase at a time; empty before the change."""
        return max((since, phase) for phase, since in ((*self.since.items(), ("", 0.0))) if since <= at)[1]


Changes = Callable[[], list[Change]]


@contextmanager
def recorded(namespace: str) -> Generator[Changes]:
    """Watch the changes of size during the block."""
    with kube.watched("statefulsets", namespace, "cache", ".metadata.annotations") as values:
        yield lambda: changes_in(values())


def changes_in(lines: Iterable[str]) -> list[Change]:
    """The changes of size in the annotations that a StatefulSet has had."""
    found: dict[int, Change] = {}
    for annotations in map(json.loads, lines):
        state, times = (json.loads(annotations[name]) for name in (MOVE, TIMES))
        if state["phase"] != "Stable":
            change = found.setdefault(times["change"], Change(state["from"], state["to"]))
            change.target = state["to"]
            change.since.setdefault(state["phase"], _monotonic(times["since"]))
            change.moving = _monotonic(times["moving"]) if "moving" in times else change.moving
    return list(found.values())


def _monotonic(text: str) -> float:
    """The time of the operator, which runs on this machine."""
    return datetime.fromisoformat(text).timestamp() - time.time() + time.monotonic()


def wait_until_settled(namespace: str, size: int, timeout: float = CHANGE) -> float:
    """Wait until no change of size takes place, and all pods are those of a size; returns the time of the end."""
    eventually(partial(_is_settled, namespace, size), timeout, f"{size} slots, and no change of size")
    return time.monotonic()


def _is_settled(namespace: str, size: int) -> bool:
    status = must_get("memcacheds", namespace, "cache")["status"]
    assert "scaling" not in status, status["scaling"]
    assert len(status["servers"]) == size
    shown = must_get(PROXIES, namespace, "front")["status"]["caches"]
    assert [(each["name"], each["servers"]) for each in shown] == [("cache", size)]
    assert len(items("pods", namespace, "app.kubernetes.io/instance=cache")) == size
    wait_until_ready(namespace, timeout=0.1)
    wait_until_ready(namespace, "front", timeout=0.1, plural=PROXIES)
    return True


def wait_until_phase(namespace: str, phase: str, timeout: float = CHANGE) -> Object:
    """Wait until `status.scaling` shows a phase; returns it."""

    def reached() -> Object:
        found: Object = must_get("memcacheds", namespace, "cache")["status"].get("scaling", {})
        assert found.get("phase") == phase, found
        return found

    return eventually(reached, timeout, f"phase {phase}")
