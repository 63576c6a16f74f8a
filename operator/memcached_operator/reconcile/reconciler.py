"""The reconciler for every kind: read the cache, apply the children, write the status if it differs."""

import asyncio
import logging
import time

from memcached_api import conditions as c
from memcached_operator import metrics
from memcached_operator.cache.cache import Cache
from memcached_operator.cache.live import DeletedError, ensure_exists
from memcached_operator.kind import InvalidSpecError, Kind, Problem, Snapshot
from memcached_operator.kube.client import ApiError, Client
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, Key, Object, key_of
from memcached_operator.reconcile.apply import Applier, Outcome
from memcached_operator.runtime.queue import Queue
from memcached_operator.status.events import Recorder
from memcached_operator.status.writer import StatusWriter
from memcached_operator.workloads.pods import belongs_to

log = logging.getLogger(__name__)


class Reconciler:
    """Reconciles the keys of the queue, for all kinds, with any number of workers."""

    def __init__(self, client: Client, cache: Cache, queue: Queue[Key], kinds: dict[str, Kind]) -> None:
        self._client = client
        self._cache = cache
        self._queue = queue
        self._kinds = kinds
        self._applier = Applier(client, cache)
        self._recorder = Recorder(client)
        self._status = StatusWriter(client, cache, self._recorder)

    async def run(self, workers: int) -> None:
        """Run workers, queue timers and the event recorder until one fails. Raises its error in an ExceptionGroup."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run_timers(), name="queue timers")
            group.create_task(self._recorder.run(), name="events")
            for number in range(workers):
                group.create_task(self.run_worker(), name=f"worker {number}")

    async def run_worker(self) -> None:
        """Run one worker: reconcile keys from the queue until cancelled."""
        while True:
            key = await self._queue.get()
            try:
                await self._reconcile_timed(key)
            finally:
                self._queue.done(key)

    async def _reconcile_timed(self, key: Key) -> None:
        name = key.resource.kind.lower()
        started = time.monotonic()
        try:
            result = await self.reconcile(key)
        except ApiError as error:
            metrics.RECONCILE_ERRORS.labels(name).inc()
            delay = self._queue.retry(key, error.retry_after or 0)
            log.warning("%s: %s; retrying in %.1f s", key, error, delay)
            result = "error"
        except Exception:
            # A broad except at the outermost level: a defect that affects one object must not stop the others.
            metrics.RECONCILE_PANICS.labels(name).inc()
            delay = self._queue.retry(key)
            log.exception("%s: unexpected error, please report it; retrying in %.1f s", key, delay)
            result = "error"
        metrics.RECONCILES.labels(name, result).inc()
        metrics.RECONCILE_TIME.labels(name).observe(time.monotonic() - started)

    async def reconcile(self, key: Key) -> str:
        """Reconcile the children and the status of one object. Raises the ApiError that requires a retry."""
        kind = self._kinds[key.resource.kind]
        cr = self._cache.get(key)
        if cr is None or cr["metadata"].get("deletionTimestamp"):
            self._queue.forget(key)
            self._status.forget(key)
            self._applier.forget_deleted()
            return "success"
        try:
            outcome = await self._apply(kind, key, cr)
        except DeletedError:
            self._queue.add(key)
            return "requeue"
        if outcome.created and not outcome.problems and not cr.get("status") and len(self._queue):
            # Other objects are queued; create their children before writing first statuses.
            self._queue.add(key)
            return "requeue"
        snapshot = self._snapshot(kind, cr, tuple(outcome.problems))
        # Blocked children and pending statuses have their own delays, independent of the backoff after an error.
        self._requeue_after(key, outcome.requeue_after)
        delay = await self._status.write(kind, key, cr, snapshot)
        self._requeue_after(key, delay)
        if outcome.errors:
            raise most_severe(outcome.errors)
        if not self._status.has_failed(key):
            self._queue.forget(key)
        return "success" if outcome.requeue_after is None and delay is None else "requeue_after"

    def _requeue_after(self, key: Key, delay: float | None) -> None:
        if delay is not None:
            self._queue.add_after(key, delay)

    async def _apply(self, kind: Kind, key: Key, cr: Object) -> Outcome:
        snapshot = self._snapshot(kind, cr)
        try:
            desired = kind.desired(cr, snapshot)
        except InvalidSpecError as error:
            return Outcome(problems=[Problem(c.INVALID_SPEC, str(error))])
        if cr.get("status") and len(snapshot.children) < len(desired):
            # A child has disappeared. Its owner may be deleted too.
            await ensure_exists(self._client, self._cache, key, cr)
        failures = self._queue.failures(key)
        return await self._applier.apply_all(cr, desired, kind.owns, failures)

    def _snapshot(self, kind: Kind, cr: Object, problems: tuple[Problem, ...] = ()) -> Snapshot:
        meta = cr["metadata"]
        children = {
            key_of(resource, child): child
            for resource in kind.owns
            for child in self._cache.owned_by(resource, meta["uid"])
        }
        pods = self._cache.of_instance(PODS, meta["namespace"], kind.app_name, meta["name"])
        deployments = [child["metadata"]["name"] for key, child in children.items() if key.resource == DEPLOYMENTS]
        return Snapshot(children, tuple(pod for pod in pods if belongs_to(pod, deployments)), problems)


def most_severe(errors: list[ApiError]) -> ApiError:
    """The error that determines the retry: permanent errors first, then the longest Retry-After."""
    return max(errors, key=lambda error: (error.permanent, error.retry_after or 0))
