"""Reads the Events of the kubelet about pods: failed mounts, and images that were not pulled."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from memcached_api import conditions as c
from memcached_operator.engine.events.reader import EventReader, Occasion
from memcached_operator.findings import mounts, pulls
from memcached_operator.kube.resource import Key, Object
from memcached_operator.world.snapshot import Snapshot


class MountEvents(EventReader[mounts.Demand]):
    """The Events about failed mounts of the pods of each object."""

    name = "mount-events"
    consequence = "missing Secrets are not reported"
    reasons = frozenset({c.SECRET_UNAVAILABLE})

    def _demand(self, snapshot: Snapshot, occasion: Occasion) -> mounts.Demand | None:
        return mounts.demand(snapshot.pods, occasion.known, occasion.now, reported=occasion.reported)

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

    def _demand(self, snapshot: Snapshot, occasion: Occasion) -> pulls.Demand | None:  # noqa: ARG002 - the class
        return pulls.demand(snapshot.pods)

    def _starts_again(self, before: pulls.Demand | None, demand: pulls.Demand | None) -> bool:
        return before is None or demand is None or not demand.is_part_of(before)

    async def _read(self, key: Key, demand: pulls.Demand) -> tuple[Object, ...]:
        def relevant(events: Iterable[Object]) -> Iterator[Object]:
            return pulls.relevant(events, demand.images, datetime.now(UTC))

        events: list[Object] = []
        for uid in sorted(demand.uids):
            events += await self._events(key.namespace, pulls.FIELDS.format(uid), mounts.MAX_EVENTS, relevant)
        return tuple(events)
