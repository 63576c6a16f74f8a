"""Reads the Events of the kubelet about pods: failed mounts, and images that were not pulled."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from memcached_api import conditions as c
from memcached_operator.kind import Snapshot
from memcached_operator.kube.resource import Key, Object
from memcached_operator.reconcile.events.reader import EventReader, Occasion
from memcached_operator.workloads.problems import mounts, pulls


@dataclass(frozen=True)
class Demand:
    """The pods of an object whose Events are needed, by their uids."""

    mounts: mounts.Demand | None
    """Those that wait for volumes, or have some."""
    pulls: tuple[str, ...]
    """Those whose status does not say why an image cannot be pulled."""

    @property
    def after(self) -> float:
        """Seconds until they are needed."""
        return 0.0 if self.mounts is None or self.pulls else self.mounts.after

    @property
    def period(self) -> float:
        """Minimum seconds between two reads."""
        return mounts.READ_PERIOD if self.mounts is None or self.pulls else self.mounts.period

    @property
    def urgent(self) -> bool:
        """Whether a pod waits, or a problem has been reported."""
        return bool(self.pulls) or (self.mounts is not None and self.mounts.urgent)


class PodEvents(EventReader[Demand]):
    """The Events about the pods of each object."""

    name = "pod-events"
    consequence = "missing Secrets are not reported, nor by a kubelet before 1.32 why images cannot be pulled"
    reasons = frozenset({c.SECRET_UNAVAILABLE, c.IMAGE_UNAVAILABLE})

    def _demand(self, snapshot: Snapshot, occasion: Occasion) -> Demand | None:
        reported = c.SECRET_UNAVAILABLE in occasion.reported
        mounting = mounts.demand(snapshot.pods, occasion.known, occasion.now, reported=reported)
        pulling = pulls.unexplained(snapshot.pods)
        return Demand(mounting, pulling) if mounting is not None or pulling else None

    async def _read(self, key: Key, demand: Demand) -> tuple[Object, ...]:
        mounting = () if demand.mounts is None else demand.mounts.uids
        found = await self._about(key, mounting, mounts.FIELDS, mounts.relevant)
        return (*found, *await self._about(key, demand.pulls, pulls.FIELDS, pulls.relevant))

    async def _about(
        self,
        key: Key,
        uids: Iterable[str],
        fields: str,
        relevant: Callable[[Iterable[Object]], Iterator[Object]],
    ) -> list[Object]:
        """The relevant Events about some pods. `fields`: the field selector, with a place for the uid."""
        found: list[Object] = []
        for uid in uids:
            found += await self._events(key.namespace, fields.format(uid), mounts.MAX_EVENTS, relevant)
        return found
