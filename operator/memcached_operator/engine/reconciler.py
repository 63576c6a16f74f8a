"""One reconcile, for every kind: read the store, apply the children, write the status if it differs."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from memcached_operator.engine import conditions, metrics
from memcached_operator.engine.apply import Applier, Outcome
from memcached_operator.engine.client import ApiError, Client
from memcached_operator.engine.events import Recorder
from memcached_operator.engine.kind import InvalidSpecError, Kind, Observed, Trouble
from memcached_operator.engine.queue import Queue
from memcached_operator.engine.resource import PODS, Key, Object, entries, key_of, mapping
from memcached_operator.engine.store import Store

log = logging.getLogger(__name__)

STATUS_PERIOD = 1.0
"""Seconds between two status patches of one object, at least."""


class Reconciler:
    """Works off the queue for all kinds; any number of its workers may run."""

    def __init__(self, client: Client, store: Store, queue: Queue[Key], kinds: dict[str, Kind]) -> None:
        self._client = client
        self._store = store
        self._queue = queue
        self._kinds = kinds
        self._applier = Applier(client, store)
        self._recorder = Recorder(client)
        self._patched_at: dict[Key, float] = {}
        self._changed_at: dict[Key, float] = {}
        self._clock: Callable[[], float] = time.monotonic

    async def work(self) -> None:
        """One worker: reconcile key after key, for ever."""
        while True:
            key = await self._queue.get()
            try:
                await self._reconcile_timed(key)
            finally:
                self._queue.done(key)

    async def _reconcile_timed(self, key: Key) -> None:
        name = key.resource.kind.lower()
        started = self._clock()
        try:
            result = await self.reconcile(key)
        except ApiError as error:
            metrics.RECONCILE_ERRORS.labels(name).inc()
            delay = self._queue.retry(key, error.retry_after or 0)
            log.warning("%s: %s; trying again in %.1f s", key, error, delay)
            result = "error"
        except Exception:
            # The outermost edge of one object's work: a defect here must not stop the work on all others.
            metrics.RECONCILE_PANICS.labels(name).inc()
            delay = self._queue.retry(key)
            log.exception("%s: unexpected error, please report it; trying again in %.1f s", key, delay)
            result = "error"
        metrics.RECONCILES.labels(name, result).inc()
        metrics.RECONCILE_TIME.labels(name).observe(self._clock() - started)

    async def reconcile(self, key: Key) -> str:
        """Bring one object's children and status up to date. Raises the ApiError that makes a retry necessary."""
        kind = self._kinds[key.resource.kind]
        cr = self._store.get(key)
        if cr is None or cr["metadata"].get("deletionTimestamp"):
            self._forget(key)
            return "success"
        outcome = await self._apply(kind, cr)
        observed = self._observe(kind, cr, tuple(outcome.troubles))
        pause = await self._write_status(kind, key, cr, observed)
        if outcome.errors:
            if pause is not None:
                # What is to be told of an object does not wait for the back-off of its children.
                self._queue.add_after(key, pause)
            raise worst(outcome.errors)
        self._queue.forget(key)
        delays = [delay for delay in (outcome.again_in, pause) if delay is not None]
        if delays:
            self._queue.add_after(key, min(delays))
            return "requeue_after"
        return "success"

    async def _apply(self, kind: Kind, cr: Object) -> Outcome:
        try:
            desired = kind.desired(cr, self._observe(kind, cr))
        except InvalidSpecError as error:
            return Outcome(troubles=[Trouble("InvalidSpec", str(error))])
        return await self._applier.apply_all(cr, desired, kind.owns)

    def _observe(self, kind: Kind, cr: Object, troubles: tuple[Trouble, ...] = ()) -> Observed:
        meta = cr["metadata"]
        children = {
            key_of(resource, child): child
            for resource in kind.owns
            for child in self._store.owned_by(resource, meta["uid"])
        }
        pods = self._store.of_instance(PODS, meta["namespace"], kind.app_name, meta["name"])
        return Observed(children, tuple(pods), troubles)

    async def _write_status(self, kind: Kind, key: Key, cr: Object, observed: Observed) -> float | None:
        """Write the status where it differs and its time has come; the seconds after which to look again."""
        now = datetime.now(UTC)
        old = mapping(cr, "status")
        verdict = kind.status(cr, observed, now)
        new = {**verdict.status}
        new["conditions"] = conditions.carry_over(entries(old, "conditions"), new["conditions"], now)
        if not conditions.differs(old, new):
            self._changed_at.pop(key, None)
            return verdict.again_in
        pause = self._pause(key, conditions.patience(old, new))
        if pause > 0:
            return pause
        body = {"metadata": {"uid": cr["metadata"]["uid"]}, "status": conditions.patch(old, new)}
        self._patched_at[key] = self._clock()
        self._changed_at.pop(key, None)
        try:
            reply = await self._client.patch(key, body, subresource="status")
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        self._store.put(key.resource, reply)
        if _overtaken(cr, new, reply):
            self._queue.add(key)
        await self._recorder.record(cr, conditions.news(old, new))
        return verdict.again_in

    def _pause(self, key: Key, patience: float) -> float:
        now = self._clock()
        since_patch = now - self._patched_at.get(key, float("-inf"))
        since_change = now - self._changed_at.setdefault(key, now)
        return max(STATUS_PERIOD - since_patch, patience - since_change)

    def _forget(self, key: Key) -> None:
        self._queue.forget(key)
        self._patched_at.pop(key, None)
        self._changed_at.pop(key, None)


def _overtaken(cr: Object, status: Mapping[str, Any], reply: Object) -> bool:
    """True where the reply tells of a change made since `cr` was read: the event of that change will be old news."""
    same_spec = reply["metadata"].get("generation") == cr["metadata"].get("generation")
    return not same_spec or conditions.differs(mapping(reply, "status"), status)


def worst(errors: list[ApiError]) -> ApiError:
    """The error to report: one that somebody must act on before one that passes."""
    return max(errors, key=lambda error: (error.refused, error.retry_after or 0))


async def run_workers(reconciler: Reconciler, queue: Queue[Key], count: int) -> None:
    """Run the workers until one of them fails; its error is raised as an exception group."""
    async with asyncio.TaskGroup() as group:
        group.create_task(queue.run_timers(), name="queue timers")
        for number in range(count):
            group.create_task(reconciler.work(), name=f"worker {number}")
