"""Reports the pods that Kubernetes itself stops: by an Event of the owner, a counter, and what its status reads."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from memcached_operator import metrics
from memcached_operator.engine.reporting.posted_events import Recorder
from memcached_operator.engine.reporting.reports import Report
from memcached_operator.findings.disruptions import (
    RECENT,
    WINDOW,
    Disruption,
    disruption,
    sentence,
)
from memcached_operator.kube.budgets import Budgets
from memcached_operator.kube.resource import Key, Object
from memcached_operator.world.pod import Pod

REASON: Final = "PodDisrupted"
"""The reason of the Events."""

EVENTS_PER_SECOND, EVENT_BURST = 1 / 60, 5.0
"""Such Events of one object: per second, and at once after a pause."""

MAX_KEPT: Final = 2000
"""Maximum disruptions of one object that are kept: twice the largest size."""


@dataclass
class _Kept:
    """The disruptions of an object. `uid`: of the object. `silent`: the number without an Event since the last one."""

    uid: str
    found: dict[str, Disruption] = field(default_factory=dict[str, Disruption])
    silent: int = 0


class Disruptions:
    """The disruptions of the last minutes, by object. They are in memory only.

    An Event has a name that follows from the uid of its pod. So another process does not create it again.
    """

    def __init__(self, recorder: Recorder, started: datetime | None = None) -> None:
        self._recorder = recorder
        self._started = started or datetime.now(UTC)
        self._kept: dict[Key, _Kept] = {}
        self._budgets = Budgets(EVENTS_PER_SECOND, EVENT_BURST)

    def observe(self, key: Key, cr: Object, pods: Iterable[Pod], loss: str) -> None:
        """Report the disruptions among the pods of an object that are new. `loss`: what is lost with a pod."""
        now = datetime.now(UTC)
        for pod in pods:
            if (found := disruption(pod, now)) is not None and found.at + WINDOW > now:
                self._add(key, cr, found, loss, now)

    def of(self, key: Key, uid: str) -> tuple[Disruption, ...]:
        """The disruptions of an object in the last WINDOW. `uid`: of the object."""
        kept = self._kept.get(key)
        if kept is None or kept.uid != uid:
            return ()
        now = datetime.now(UTC)
        kept.found = {uid: each for uid, each in kept.found.items() if each.at + WINDOW > now}
        if not kept.found:
            self.forget(key)
        return tuple(kept.found.values())

    def forget(self, key: Key) -> None:
        """Remove the state of an object."""
        self._kept.pop(key, None)

    def _add(self, key: Key, cr: Object, found: Disruption, loss: str, now: datetime) -> None:
        kept = self._kept.get(key)
        if kept is None or kept.uid != cr["metadata"]["uid"]:
            kept = self._kept[key] = _Kept(cr["metadata"]["uid"])
        if found.uid in kept.found or len(kept.found) >= MAX_KEPT:
            return
        kept.found[found.uid] = found
        if found.at >= self._started:
            metrics.DISRUPTIONS.labels(key.resource.kind.lower(), found.label).inc()
        if found.at + RECENT <= now:
            return
        if not self._budgets.take(str(key), now.timestamp()):
            kept.silent += 1
            return
        text = sentence(found, loss, kept.silent)
        kept.silent = 0
        self._recorder.record(cr, [Report(REASON, text, warning=True, name=found.uid)])
