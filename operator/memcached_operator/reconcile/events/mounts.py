"""Reads the Events about failed mounts of pods."""

from memcached_api import conditions as c
from memcached_operator.kind import Snapshot
from memcached_operator.kube.resource import Key, Object, nested_list
from memcached_operator.reconcile.events.reader import EventReader, Occasion
from memcached_operator.workloads.problems import mounts


class MountEvents(EventReader[mounts.Demand]):
    """The Events about failed mounts of the pods of each object."""

    name = "mount-events"
    consequence = "missing Secrets are not reported"

    def _demand(self, snapshot: Snapshot, occasion: Occasion) -> mounts.Demand | None:
        return mounts.demand(snapshot.pods, occasion.known, occasion.now, reported=occasion.reported)

    def _is_reported(self, cr: Object) -> bool:
        conditions = nested_list(cr, "status", "conditions")
        return c.SECRET_UNAVAILABLE in [condition.get("reason") for condition in conditions]

    async def _read(self, key: Key, demand: mounts.Demand) -> tuple[Object, ...]:
        events: list[Object] = []
        for uid in demand.uids:
            fields = mounts.FIELDS.format(uid)
            events += await self._events(key.namespace, fields, mounts.MAX_EVENTS, mounts.relevant)
        return tuple(events)
