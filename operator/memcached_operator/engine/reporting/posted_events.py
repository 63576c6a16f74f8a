"""Events in the object's namespace. They are posted in the background, and dropped rather than repeated."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime

from memcached_operator import metrics
from memcached_operator.engine.reporting.conditions import timestamp, truncate
from memcached_operator.engine.reporting.reports import Report
from memcached_operator.engine.runtime.fair_queue import FairQueue
from memcached_operator.kube import texts
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import EVENTS, Key, Object

log = logging.getLogger(__name__)

COMPONENT = "memcached-operator"
QUEUE = "events"
"""The name of the queue, in metrics."""

MAX_MESSAGE_LENGTH = 1024
"""Characters. The API documents at most 1 kB for the note of an Event in events.k8s.io/v1. The API server enforces that
only for Events with an eventTime, which ours do not have."""

EXISTS = 409
"""Response code if an Event with the name of a report exists: an earlier process has posted it."""

MAX_QUEUED_EVENTS = 2000
"""Maximum Events in the queue. A thousand new objects have one each. Upon one more, the newest of the namespace with
the most Events is dropped, so that the objects of one namespace cannot displace the Events of others."""

MAX_QUEUED_OF_OBJECT = 4
"""Maximum Events of one object in the queue, so that one whose spec changes all the time does not fill it."""


class Recorder:
    """Posts Events in the background, those of all namespaces in turn: an Event never delays a reconciliation."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._queue: FairQueue[tuple[Key, Object]] = FairQueue(lambda queued: queued[0].namespace)
        self._queued: Counter[str] = Counter()  # Events in the queue by the object's uid
        self._wake = asyncio.Event()

    def record(self, cr: Object, reports: Iterable[Report]) -> None:
        """Enqueue one Event per report."""
        uid = cr["metadata"]["uid"]
        for report in reports:
            event = event_of(cr, report, datetime.now(UTC))
            key = Key(EVENTS, cr["metadata"]["namespace"], event["metadata"]["name"])
            if self._queued[uid] >= MAX_QUEUED_OF_OBJECT:
                log.info("%s is dropped: %d Events of this object are queued", key, self._queued[uid])
                continue
            self._queue.append((key, event))
            self._queued[uid] += 1
            if len(self._queue) > MAX_QUEUED_EVENTS:
                dropped, event = self._queue.pop_longest()
                self._forget(event)
                log.info("%s is dropped: %d Events are queued", dropped, len(self._queue))
        self._wake.set()

    async def run(self) -> None:
        """Post queued Events one after the other, until cancelled."""
        while True:
            while not len(self._queue):
                self._wake.clear()
                await self._wake.wait()
            key, event = self._queue.popleft()
            self._forget(event)
            try:
                await self._client.create(key, event)
            except ApiError as error:
                is_expected = error.namespace_terminating or error.code == EXISTS
                log.log(logging.DEBUG if is_expected else logging.INFO, "cannot post %s: %s", key, error)
            except Exception:  # at the outermost level: a defect must not stop the process
                metrics.RECONCILE_PANICS.labels(QUEUE).inc()
                log.exception("unexpected error, please report it: %s is dropped", key)

    def _forget(self, event: Object) -> None:
        """Count that an Event is not queued any more."""
        uid = event["involvedObject"]["uid"]
        self._queued[uid] -= 1
        if not self._queued[uid]:
            del self._queued[uid]


def event_of(cr: Object, report: Report, now: datetime) -> Object:
    """The Event about an object with this report."""
    meta = cr["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        # By default a unique name from the object's name and the time in nanoseconds, as in client-go.
        "metadata": {
            "name": f"{meta['name']}.{report.name or f'{int(now.timestamp() * 1e9):x}'}",
            "namespace": meta["namespace"],
        },
        "involvedObject": {
            "apiVersion": cr["apiVersion"],
            "kind": cr["kind"],
            "name": meta["name"],
            "namespace": meta["namespace"],
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
        },
        "type": "Warning" if report.warning else "Normal",
        "reason": report.reason,
        "message": truncate(texts.line(report.message), MAX_MESSAGE_LENGTH),
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": timestamp(now),
        "lastTimestamp": timestamp(now),
        "count": 1,
    }
