"""Reads why pods of workloads are missing or not deleted, and makes the workloads' controllers try again."""

import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import Final

from memcached_api import conditions as c
from memcached_api.annotations import RETRY_ANNOTATION
from memcached_operator.engine.events.reader import EventReader, Occasion
from memcached_operator.engine.reporting.conditions import timestamp
from memcached_operator.engine.writes.ownership import annotation_patch, is_controlled_by
from memcached_operator.findings import creation
from memcached_operator.kube.budgets import Budgets
from memcached_operator.kube.client import JSON_PATCH, ApiClient, ApiError
from memcached_operator.kube.resource import Key, Object
from memcached_operator.world.live import find_pod
from memcached_operator.world.snapshot import Snapshot
from memcached_operator.world.store import Store

log = logging.getLogger(__name__)

RETRY_MANAGER: Final = "memcached-operator-retry"
"""The field manager of RETRY_ANNOTATION. With the operator's own, the next apply would remove the annotation, and the
time of the change would count as progress of a rollout."""

CHANGED: Final = (404, 409, 422)
"""Response codes if the workload, or its owner, has changed since the last event."""

RETRIES_PER_SECOND, RETRY_BURST = 1.0, 10.0
"""Such attempts in one namespace: per second, and at once after a pause."""


class CreationEvents(EventReader[creation.Demand]):
    """The Events about pods that cannot be created or deleted, and pods of other owners with the names of slots."""

    name = "creation-events"
    consequence = "the reasons why pods cannot be created or deleted are not reported"
    reasons = frozenset({c.APPLY_FAILED, c.CONFLICT})

    def __init__(self, client: ApiClient, store: Store, on_change: Callable[[Key], None]) -> None:
        super().__init__(client, on_change)
        self._store = store
        self._retries = Budgets(RETRIES_PER_SECOND, RETRY_BURST)

    def of(self, key: Key, snapshot: Snapshot, now: datetime) -> tuple[Object, ...]:
        """What is known. It is forgotten when no pods are missing or to be deleted any more."""
        known = super().of(key, snapshot, now)
        state = self._states.get(key)
        if state is not None and state.demand is None:
            self.forget(key)
            return ()
        return known

    def _demand(self, snapshot: Snapshot, occasion: Occasion) -> creation.Demand | None:
        return creation.demand(snapshot, occasion.waited, reported=occasion.reported)

    def _period(self, key: Key, demand: creation.Demand) -> float:  # noqa: ARG002 - the class
        return creation.period(self._waited(key))

    async def _read(self, key: Key, demand: creation.Demand) -> tuple[Object, ...]:
        is_due = demand.observed and self._waited(key) >= creation.RETRY_PERIOD
        if is_due and self._retries.take(key.namespace, self._states[key].read_at):
            await self._retry(key, demand)

        def relevant(events: Iterable[Object]) -> Iterator[Object]:
            return creation.relevant(events, demand.workload, datetime.now(UTC))

        read = [await self._events(key.namespace, fields, creation.MAX_EVENTS, relevant) for fields in demand.fields]
        found = creation.newest(chain.from_iterable(read))
        # Another owner's pod can have the name of a slot. Only pods with the operator's label are watched.
        pods = [await find_pod(self._client, key.namespace, slot) for slot in demand.slots]
        obstacles = (creation.obstacle(pod, demand.uid) for pod in pods if pod is not None)
        return (*found, *(obstacle for obstacle in obstacles if obstacle is not None))

    async def _retry(self, owner: Key, demand: creation.Demand) -> None:
        """Make the controller of a workload try again to create or delete pods, by a change that has no other effect.

        Only if the owner still controls the workload: the store may be newer than the demand. It may be older than the
        cluster, too, so the patch tests the same.
        """
        key = demand.workload
        cr, live = self._store.get(owner), self._store.get(key)
        if cr is None or live is None or live["metadata"]["uid"] != demand.uid or not is_controlled_by(live, cr):
            return
        patch = annotation_patch(live, RETRY_ANNOTATION, timestamp(datetime.now(UTC)))
        try:
            path, manager = key.resource.path(key.namespace, key.name), {"fieldManager": RETRY_MANAGER}
            reply = await self._client.request("PATCH", path, patch, JSON_PATCH, manager)
        except ApiError as error:
            level = logging.INFO if error.code in CHANGED else logging.WARNING
            log.log(level, "%s: cannot make its controller try again: %s", key, error)
            return
        log.info("%s lacks pods, or has too many: its controller tries again", key)
        self._store.put(key.resource, reply)
