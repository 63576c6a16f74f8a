"""Writes statuses: only where they differ, not too often, and the last state always."""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from memcached_operator.cache.cache import Cache
from memcached_operator.cache.live import get_live
from memcached_operator.kind import Kind, Snapshot
from memcached_operator.kube.client import ApiError, Client
from memcached_operator.kube.resource import Key, Object, entries, mapping
from memcached_operator.status import conditions
from memcached_operator.status.events import Recorder

STATUS_PERIOD = 1.0
"""Seconds between two status patches of one object, at least."""


class StatusWriter:
    """Remembers, per object, only when it wrote last and since when something waits to be written."""

    def __init__(self, client: Client, cache: Cache, recorder: Recorder) -> None:
        self._client = client
        self._cache = cache
        self._recorder = recorder
        self._patched_at: dict[Key, float] = {}
        self._changed_at: dict[Key, float] = {}
        self._pruned: dict[Key, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
        self._clock: Callable[[], float] = time.monotonic

    async def write(self, kind: Kind, key: Key, cr: Object, snapshot: Snapshot) -> float | None:
        """Write the status where it differs and its time has come; the seconds after which to look again.

        Raises the ApiError of a patch that failed.
        """
        now = datetime.now(UTC)
        old = mapping(cr, "status")
        desired = kind.status(cr, snapshot, now)
        new = {**desired.status}
        new["conditions"] = conditions.carry_over(entries(old, "conditions"), new["conditions"], now)
        if not conditions.differs(old, new) or self._pruned.get(key) == (new, old):
            self._changed_at.pop(key, None)
            return desired.requeue_after
        pause = self._pause(key, conditions.debounce(old, new))
        if pause > 0:
            return pause
        self._patched_at[key] = self._clock()
        reply = await self._patch(key, cr, conditions.patch(old, new))
        self._changed_at.pop(key, None)
        if reply is None:
            return None
        self._recorder.record(cr, conditions.news(old, new))
        return 0.0 if self._has_new_generation(key, cr, new, reply) else desired.requeue_after

    def is_pending(self, key: Key) -> bool:
        """True while something waits to be written."""
        return key in self._changed_at

    def forget(self, key: Key) -> None:
        """An object is gone."""
        for memory in (self._patched_at, self._changed_at, self._pruned):
            memory.pop(key, None)

    async def _patch(self, key: Key, cr: Object, changes: Mapping[str, Any]) -> Object | None:
        # The uid, so that the status of an object is never written to a later one of its name.
        body = {"metadata": {"uid": cr["metadata"]["uid"]}, "status": changes}
        try:
            reply = await self._client.patch(key, body, subresource="status")
        except ApiError as error:
            if error.code != 404:
                raise
            live = await get_live(self._client, self._cache, key)
            if live is not None and live["metadata"]["uid"] == cr["metadata"]["uid"]:
                raise
            return None
        self._cache.put(key.resource, reply)
        return reply

    def _has_new_generation(self, key: Key, cr: Object, status: Mapping[str, Any], reply: Object) -> bool:
        """True where the reply tells of a change made since `cr` was read: its own event will be old news."""
        kept = mapping(reply, "status")
        self._pruned.pop(key, None)
        if not conditions.differs(kept, status):
            return reply["metadata"].get("generation") != cr["metadata"].get("generation")
        # Once more, in case somebody else wrote it; not for ever, in case the CRD has no such field.
        self._pruned[key] = (status, kept)
        return True

    def _pause(self, key: Key, debounce: float) -> float:
        now = self._clock()
        since_patch = now - self._patched_at.get(key, float("-inf"))
        since_change = now - self._changed_at.setdefault(key, now)
        return max(STATUS_PERIOD - since_patch, debounce - since_change)
