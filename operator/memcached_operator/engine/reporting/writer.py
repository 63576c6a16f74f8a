"""Writes statuses if they differ, at a limited rate. The latest status is always written eventually."""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from memcached_operator.engine.kind import Outcome, ReconciledKind
from memcached_operator.engine.reporting import conditions, reports
from memcached_operator.engine.reporting.posted_events import Recorder
from memcached_operator.findings.finding import Intervention
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import Key, Object, nested_map
from memcached_operator.world.live import StaleError, get_live
from memcached_operator.world.snapshot import Snapshot
from memcached_operator.world.store import Store

CONFLICT: Final = 409
"""Response code for a write to another version of an object."""

STATUS_PERIOD = 1.0
"""Minimum seconds between two status patches of one object."""


class StatusWriter:
    """Writes statuses. Its state per object: the times of the last write and of the first unwritten change, a status
    that the API server did not store as it was sent, whether a rollout is in progress, and the interventions that it
    mentions.
    """

    def __init__(self, client: ApiClient, store: Store, recorder: Recorder) -> None:
        self._client = client
        self._store = store
        self._recorder = recorder
        self._patched_at: dict[Key, float] = {}
        self._changed_at: dict[Key, float] = {}
        self._pruned: dict[Key, tuple[Mapping[str, object], Mapping[str, object]]] = {}
        self._sent: dict[Key, Mapping[str, object]] = {}
        """The statuses of patches without a reply."""
        self._rollouts: set[Key] = set()
        self._interventions: dict[Key, frozenset[Intervention]] = {}
        self._clock: Callable[[], float] = time.monotonic

    def begin_rollout(self, key: Key) -> None:
        """Record that a new pod template was applied: an Event reports when all pods have it."""
        self._rollouts.add(key)

    async def write(
        self, kind: ReconciledKind, key: Key, snapshot: Snapshot, outcome: Outcome, *, versioned: bool = False
    ) -> float | None:
        """Write the status if it differs and its debounce period is over. Returns the delay for a requeue, or None.

        `versioned`: only to this version of the object. Raises StaleError if it is another one, and ApiError if the
        patch fails.
        """
        now = datetime.now(UTC)
        cr, old = snapshot.cr, nested_map(snapshot.cr, "status")
        desired = kind.status(snapshot, outcome, now)
        new = {**desired.status}
        new["conditions"] = conditions.with_transition_times(conditions.conditions_of(old), new["conditions"], now)
        if not conditions.differs(old, new) or self._pruned.get(key) == (new, old):
            self._changed_at.pop(key, None)
            self._end_rollout(key, new)
            return desired.requeue_after
        delay = self._delay(key, conditions.debounce_period(old, new))
        if delay > 0:
            return delay
        self._patched_at[key] = self._clock()
        changes = conditions.merge_patch(old, new)
        self._sent[key] = new
        try:
            reply = await self._patch(key, cr, changes, versioned=versioned)
        finally:
            del self._sent[key]
        if reply is None:
            self.forget(key)
            return None
        self._changed_at.pop(key, None)
        transitions = conditions.reported_transitions(old, new, rollout=key in self._rollouts)
        self._recorder.record(cr, map(reports.of_condition, transitions))
        self._report_interventions(key, cr, outcome.interventions)
        self._end_rollout(key, new)
        self._pruned.pop(key, None)
        if _is_outdated(cr, new, changes, reply):
            return 0.0
        if conditions.differs(stored := nested_map(reply, "status"), new):
            self._pruned[key] = (new, stored)
        return desired.requeue_after

    def _report_interventions(self, key: Key, cr: Object, interventions: Sequence[Intervention]) -> None:
        """Post an Event about each one that the status mentions first."""
        before, now = self._interventions.pop(key, frozenset[Intervention]()), frozenset(interventions)
        if now:
            self._interventions[key] = now
        self._recorder.record(cr, [reports.of_intervention(cr, each) for each in interventions if each not in before])

    def is_echo(self, key: Key, obj: Object) -> bool:
        """Whether an event has the status of a patch whose reply has not arrived."""
        return key in self._sent and nested_map(obj, "status") == self._sent[key]

    def has_failed(self, key: Key) -> bool:
        """True if a patch of the pending change failed: a change is pending until a patch of it succeeds."""
        changed_at = self._changed_at.get(key)
        return changed_at is not None and self._patched_at.get(key, float("-inf")) >= changed_at

    def forget(self, key: Key) -> None:
        """Remove the state of a deleted object."""
        for state in (self._patched_at, self._changed_at, self._pruned, self._interventions):
            state.pop(key, None)
        self._rollouts.discard(key)

    def _end_rollout(self, key: Key, status: Mapping[str, object]) -> None:
        if conditions.is_rolled_out(status):
            self._rollouts.discard(key)

    async def _patch(self, key: Key, cr: Object, changes: Mapping[str, object], *, versioned: bool) -> Object | None:
        # The uid is a precondition: the status is never written to a later object of the same name.
        names = ("uid", "resourceVersion") if versioned else ("uid",)
        body = {"metadata": {name: cr["metadata"][name] for name in names}, "status": changes}
        try:
            reply = await self._client.patch(key, body, subresource="status")
        except ApiError as error:
            if versioned and error.code == CONFLICT and await get_live(self._client, self._store, key) is not None:
                raise StaleError from error
            if error.code != 404:
                raise
            live = await get_live(self._client, self._store, key)
            if live is not None and live["metadata"]["uid"] == cr["metadata"]["uid"]:
                raise
            return None
        self._store.put(key.resource, reply)
        return reply

    def _delay(self, key: Key, debounce: float) -> float:
        now = self._clock()
        since_patch = now - self._patched_at.get(key, float("-inf"))
        since_change = now - self._changed_at.setdefault(key, now)
        return max(STATUS_PERIOD - since_patch, debounce - since_change)


def _is_outdated(cr: Object, status: Mapping[str, object], changes: Mapping[str, object], reply: Object) -> bool:
    """True if another client has changed the object since `cr` was read. The store ignores the event of that change.

    A field of `changes`, which were sent, differs only if the API server does not store it: the CRD may prune it.
    """
    if reply["metadata"].get("generation") != cr["metadata"].get("generation"):
        return True
    return bool(conditions.merge_patch(nested_map(reply, "status"), status).keys() - changes.keys())
