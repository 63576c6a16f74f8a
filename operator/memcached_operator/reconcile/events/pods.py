"""Reads the Events of the kubelet about pods: failed mounts, and images that were not pulled."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from memcached_api import conditions as c
from memcached_operator.kind import Snapshot
from memcached_operator.kube.resource import Key, Object
from memcached_operator.reconcile.events.reader import EventReader, Occasion
from memcached_operator.workloads.problems import mounts, pulls


class MountEvents(EventReader[mounts.Demand]):
    """The Events about failed mounts of the pods of each object."""

    name = "mount-events"
    consequence = "missing Secrets are not reported"
    reasons = frozenset({c.SECRET_UNAVAILABLE})

    def _demand(self, snapshot: Snapshot, occasion: Occasion) -> mounts.Demand | None:
        return mounts.demand(snapshot.pods, occasion.known, occasion.now, reported=bool(occasion.reported))

    async def _read(self, key: Key, demand: mounts.Demand) -> tuple[Object, ...]:
        events: list[Object] = []
        for uid in demand.uids:
            found = await self._events(key.namespace, mounts.FIELDS.format(uid), mounts.MAX_EVENTS, mounts.relevant)
            events += mounts.newest(found)
        return tuple(events)


class PullEvents(EventReader[pulls.Demand]):
    """The Events about images of the pods of each object that an older kubelet does not explain."""

    name = "pull-events"
    consequence = "a kubelet before 1.32 does not say why an image cannot be pulled"
    reasons = frozenset({c.IMAGE_UNAVAILABLE})

    def of(self, key: Key, snapshot: Snapshot, now: datetime) -> tuple[Object, ...]:
        """What is known of the pods that need it. It is read at once for others than before."""
        state, wanted = self._states.get(key), pulls.demand(snapshot.pods)
        if state is not None and (wanted is None or state.demand is None or not wanted.is_part_of(state.demand)):
            self.forget(key)
        return super().of(key, snapshot, now)

    def _demand(self, snapshot: Snapshot, occasion: Occasion) -> pulls.Demand | None:  # noqa: ARG002 - the class
        return pulls.demand(snapshot.pods)

    async def _read(self, key: Key, demand: pulls.Demand) -> tuple[Object, ...]:
        def relevant(events: Iterable[Object]) -> Iterator[Object]:
            return pulls.relevant(events, demand.images, datetime.now(UTC))

        events: list[Object] = []
        for uid in sorted(demand.uids):
            events += await self._events(key.namespace, pulls.FIELDS.format(uid), mounts.MAX_EVENTS, relevant)
        return tuple(events)
