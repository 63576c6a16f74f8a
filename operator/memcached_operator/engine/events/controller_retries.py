"""Makes the controllers of workloads try again to create or delete pods."""

import logging
from datetime import UTC, datetime
from typing import Final

from memcached_api.annotations import RETRY_ANNOTATION
from memcached_operator.engine.reporting.conditions import timestamp
from memcached_operator.engine.writes.ownership import annotation_patch, is_controlled_by
from memcached_operator.kube.budgets import Budgets
from memcached_operator.kube.client import JSON_PATCH, ApiClient, ApiError
from memcached_operator.kube.resource import Key
from memcached_operator.world.store import Store

log = logging.getLogger(__name__)

RETRY_MANAGER: Final = "memcached-operator-retry"
"""The field manager of RETRY_ANNOTATION. With the operator's own, the next apply would remove the annotation, and the
time of the change would count as progress of a rollout."""

CHANGED: Final = (404, 409, 422)
"""Response codes if the workload, or its owner, has changed since the last event."""

RETRIES_PER_SECOND, RETRY_BURST = 1.0, 10.0
"""Such attempts in one namespace: per second, and at once after a pause."""


class Retries:
    """Makes the controllers of workloads try again, by a change that has no other effect."""

    def __init__(self, client: ApiClient, store: Store) -> None:
        self._client = client
        self._store = store
        self._budgets = Budgets(RETRIES_PER_SECOND, RETRY_BURST)

    async def retry(self, owner: Key, key: Key, uid: str, now: float) -> None:
        """Change a workload with this uid, unless its namespace has no attempts left. `now`: seconds of any clock.

        Only if the owner still controls the workload: the store may be newer than the demand. It may be older than the
        cluster, too, so the patch tests the same.
        """
        if not self._budgets.take(key.namespace, now):
            return
        cr, live = self._store.get(owner), self._store.get(key)
        if cr is None or live is None or live["metadata"]["uid"] != uid or not is_controlled_by(live, cr):
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
