"""Events in the object's namespace, posted when Available or Degraded changes."""

import asyncio
import logging
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import EVENTS, Key, Object
from memcached_operator.status.conditions import Condition, timestamp

log = logging.getLogger(__name__)

COMPONENT = "memcached-operator"
MAX_MESSAGE_LENGTH = 1024
"""Characters. The API server rejects an Event with a longer message (validation of core/v1 Event)."""


MAX_QUEUED_EVENTS = 1000
"""Maximum Events in the queue; further Events are dropped."""


class Recorder:
    """Posts Events in the background. An Event that cannot be posted is logged and dropped."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._queue: asyncio.Queue[tuple[Key, dict[str, Any]]] = asyncio.Queue(MAX_QUEUED_EVENTS)

    def record(self, cr: Object, changed: Iterable[Condition]) -> None:
        """Enqueue one Event per condition."""
        for condition in changed:
            event = event_of(cr, condition, datetime.now(UTC))
            key = Key(EVENTS, cr["metadata"]["namespace"], event["metadata"]["name"])
            try:
                self._queue.put_nowait((key, event))
            except asyncio.QueueFull:
                log.warning("%s is dropped: %d Events are queued", key, MAX_QUEUED_EVENTS)

    async def run(self) -> None:
        """Post queued Events one after the other, until cancelled."""
        while True:
            key, event = await self._queue.get()
            try:
                await self._client.create(key, event)
            except ApiError as error:
                log.log(
                    logging.DEBUG if error.namespace_terminating else logging.INFO, "cannot post %s: %s", key, error
                )


def event_of(cr: Object, condition: Condition, now: datetime) -> dict[str, Any]:
    """The Event that reports a condition."""
    meta = cr["metadata"]
    good = (condition["status"] == "True") == (condition["type"] == "Available")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        # A unique name from the object's name and the time in nanoseconds, as in client-go.
        "metadata": {"name": f"{meta['name']}.{int(now.timestamp() * 1e9):x}", "namespace": meta["namespace"]},
        "involvedObject": {
            "apiVersion": cr["apiVersion"],
            "kind": cr["kind"],
            "name": meta["name"],
            "namespace": meta["namespace"],
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
        },
        "type": "Normal" if good else "Warning",
        "reason": condition["reason"],
        "message": condition["message"][:MAX_MESSAGE_LENGTH],
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": timestamp(now),
        "lastTimestamp": timestamp(now),
        "count": 1,
    }
