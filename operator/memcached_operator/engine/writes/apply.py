"""Applies the desired children of one object with as few writes as possible."""

import logging
import time
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial

from memcached_api import conditions as c
from memcached_operator.engine.kind import ReconciledKind
from memcached_operator.engine.reporting.conditions import is_reported
from memcached_operator.engine.reporting.reports import of_rollout
from memcached_operator.engine.writes.failed_requests import Cooldown
from memcached_operator.engine.writes.intent import identity, replicas_of, with_intent, without_times
from memcached_operator.engine.writes.ownership import (
    Action,
    Decision,
    Owner,
    controller_reference,
    decide,
    is_controlled_by,
    is_current,
    preparation_patch,
    scale_patch,
    version_test,
)
from memcached_operator.engine.writes.result import Result
from memcached_operator.engine.writes.reverts import Reverts
from memcached_operator.findings.finding import Problem
from memcached_operator.kube.client import JSON_PATCH, ApiClient, ApiError
from memcached_operator.kube.compare import fingerprint, projection
from memcached_operator.kube.field_managers import has_co_owners, takeover
from memcached_operator.kube.resource import SERVICES, Key, Object, Resource, controller_of, key_of
from memcached_operator.world.live import Rechecks, StaleError, exact_version, get_live
from memcached_operator.world.snapshot import Snapshot
from memcached_operator.world.store import Store, version_of

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
"""Attempts per reconciliation to apply a child whose live state differs from the store."""

VERSIONED = (SERVICES,)
"""Resources that are applied only to the version that is known, because an API server allocates for them.

It may start an update from an older version in its watch cache, such as the one before the transfer of the field
ownership. It notices when it writes, after it has allocated the node ports, and repeats the update: then they are
taken, by nobody, for minutes (kubernetes Store.Update). It compares a resourceVersion before it allocates.
"""

DELETION = "deletion"
"""Used instead of an intent digest for the deletion of a child."""

RETRY_PERIOD = 60.0
"""Seconds after which a state that a policy has removed or changed is written again: nothing else reports its end."""

DEGRADED_THRESHOLD = 3
"""Consecutive failures after which a transient error is reported as Degraded."""


class Applier:
    """Creates, updates and deletes children. Every response updates the store.

    `own_kinds`: group and kind of the custom resources that this operator reconciles.
    """

    def __init__(self, client: ApiClient, store: Store, own_kinds: AbstractSet[tuple[str, str]] = frozenset()) -> None:
        self._client = client
        self._store = store
        self._own_kinds = own_kinds
        self._ineffective: dict[Key, tuple[str, float]] = {}
        self._cooldown = Cooldown()
        self._rechecks = Rechecks()
        self.reverts = Reverts(client.get)

    def would_create(self, kind: ReconciledKind, snapshot: Snapshot, desired: Iterable[Object]) -> bool:
        """Whether a child does not exist and may be created now."""
        missing = ((key, child) for child in desired if (key := kind.key_of(child)) not in snapshot.children)
        return any(
            not self._is_in_the_way(key) and not self.reverts.delay(snapshot.cr, key, build_intent(snapshot.cr, child))
            for key, child in missing
        )

    def waiting_workloads(self, kind: ReconciledKind, cr: Object, desired: Iterable[Object]) -> dict[Key, float]:
        """The workloads whose write waits, because other clients have changed them too often, and the seconds."""
        workloads = {each.resource for each in kind.workloads}
        keys = ((key, child) for child in desired if (key := kind.key_of(child)).resource in workloads)
        delays = {key: self.reverts.delay(cr, key, build_intent(cr, child)) for key, child in keys}
        return {key: delay for key, delay in delays.items() if delay > 0}

    def _is_in_the_way(self, key: Key) -> bool:
        """Whether the deletion of an earlier child is awaited. After it, the owner is reconciled again."""
        return self._store.entry(key) is not None and self._rechecks.is_waiting(key)

    async def apply_all(
        self,
        kind: ReconciledKind,
        snapshot: Snapshot,
        desired: Iterable[Object],
        failures: int = 0,
        waiting: Mapping[Key, float] | None = None,
        *,
        versioned: bool = False,
    ) -> Result:
        """Apply each child independently: a failure does not block the others. Delete the children not in `desired`.

        `failures`: consecutive failures so far; from DEGRADED_THRESHOLD on, transient errors are reported as Degraded.
        `waiting`: workloads that are not written now, and the seconds until they may be. No child is deleted then.
        `versioned`: workloads are written only to the version of the snapshot. Raises StaleError if one has another
        version, or if a child exists that the snapshot does not contain, because the plan may depend on it.
        """
        template_remedy = partial(kind.template_remedy, snapshot.cr) if kind.template_remedy else None
        result = Result(failures + 1 < DEGRADED_THRESHOLD, template_remedy)
        workloads = kind.workload_keys(key_of(kind.resource, snapshot.cr)) if versioned else []
        seen = {key: found for key in workloads if (found := snapshot.workload(key.resource)) is not None}
        desired_keys = set[Key]()
        for child in desired:
            key = kind.key_of(child)
            desired_keys.add(key)
            intended = build_intent(snapshot.cr, child)
            delay = (waiting or {}).get(key) or self.reverts.delay(snapshot.cr, key, intended)
            if delay > 0:
                result.requeue(delay)
                continue
            with (
                result.record_errors(key, optional=key.resource in kind.optional),
                self._cooldown.guard(key, identity(intended)),
            ):
                await self._reconcile_child(kind, snapshot, key, intended, result, seen.get(key))
        result.end(snapshot.cr["kind"])
        for resource in () if waiting else filter(snapshot.is_listed, kind.owns):
            await self._delete_unwanted(snapshot.cr, resource, desired_keys, result)
        return result

    async def _reconcile_child(
        self,
        kind: ReconciledKind,
        snapshot: Snapshot,
        key: Key,
        child: Object,
        result: Result,
        seen: Object | None,
    ) -> None:
        """Make a child as desired. `seen`: the only version that may be changed; None for any."""
        unknown = False
        for _ in range(MAX_ATTEMPTS):
            step = await self._decide(snapshot, key, child, unknown=unknown)
            if step.action is not Action.WAIT:
                self._rechecks.forget(key)
            match step.action:
                case Action.CREATE | Action.APPLY | Action.SCALE:
                    done = await self._write(kind, snapshot.cr, key, child, step.action, result, seen)
                    unknown |= step.action is Action.CREATE and not done
                case Action.WAIT:
                    # The DELETED event causes the next reconcile. It may be missed, so read the object sometimes.
                    done = not self._rechecks.is_due(key) or await self._refresh(key) is not None
                    if done:
                        result.block(Problem(c.WAITING_FOR_DELETION, step.message), self._rechecks.seconds(key))
                    elif key not in snapshot.children:
                        raise StaleError
                case Action.CONFLICT:
                    done = True
                    rivals = self._rivals(snapshot.cr, step.owner)
                    result.conflict(key, step.message, snapshot.cr["kind"], is_copy=step.is_copy, rivals=rivals)
                case Action.SKIP:
                    done = True
            if done:
                return
        raise ApiError(409, "Conflict", f"{key} kept changing during {MAX_ATTEMPTS} attempts to apply it")

    def _rivals(self, cr: Object, owner: Owner | None) -> str:
        """An object and the other owner of its child, if this operator reconciles both; otherwise empty."""
        if owner is None or (owner.group, owner.kind) not in self._own_kinds:
            return ""
        return f"{cr['kind']} {cr['metadata']['name']} or for {owner}"

    async def _write(
        self,
        kind: ReconciledKind,
        cr: Object,
        key: Key,
        child: Object,
        action: Action,
        result: Result,
        seen: Object | None,
    ) -> bool:
        """Create, apply or scale a child. Returns False if the live object has changed since the decision."""
        live = None if action is Action.CREATE else self._store.get(key)
        if live is not None and self._is_ineffective(key, child, RETRY_PERIOD if seen is not None else float("inf")):
            return True
        revert = await self.reverts.identify(cr, key, child, live, kind.restart)
        if action is Action.CREATE:
            done = await self._create(key, child)
            result.created += [key] * done
        else:
            done = await self._change(key, child, action, result, seen)
        if done:
            result.wrote = True
            self.reverts.add(revert)
        return done

    async def _decide(self, snapshot: Snapshot, key: Key, child: Object, *, unknown: bool) -> Decision:
        """The next step. `unknown`: a live object has been found that the plan did not know.

        Raises StaleError if such an object is to be changed, or if the deletion of such a child is awaited: the plan
        may depend on what it contains, such as the pod template of a paused rollout, and on its pods. Not if the store
        has no room for it: the next plan would not know it either.
        """
        cr = snapshot.cr
        live = self._newest(snapshot, key)
        step = decide(cr, child, live)
        unknown = unknown or (key not in snapshot.children and is_controlled_by(live, cr))
        if step.action is Action.CONFLICT or (step.action is Action.CREATE and is_reported(cr)):
            # Objects without the operator's label are not watched, so the store may be wrong in both cases.
            live = await self._refresh(key)
            step = decide(cr, child, live)
            unknown = live is not None
        is_changed = step.action in (Action.APPLY, Action.SCALE)
        is_awaited = step.action is Action.WAIT and is_controlled_by(live, cr)
        if unknown and (is_changed or is_awaited) and self._store.entry(key) is not None:
            raise StaleError
        return step

    def _newest(self, snapshot: Snapshot, key: Key) -> Object | None:
        """The child of the snapshot, unless the store has changed since."""
        child, entry = snapshot.children.get(key), self._store.entry(key)
        if child is not None and entry is not None and version_of(child) == entry.version:
            return child
        return None if entry is None else entry.object()

    async def _create(self, key: Key, child: Object) -> bool:
        try:
            self._store.put(key.resource, await self._client.create(key, child))
        except ApiError as error:
            if error.reason == "AlreadyExists" and await self._has_changed(key, None):
                return False
            raise
        return True

    async def _change(
        self, key: Key, child: Object, action: Action, result: Result, seen: Object | None = None
    ) -> bool:
        """Apply or scale a child. Returns False if the live object has changed since the decision.

        Raises StaleError if it is not `seen`, and ApiError if the write is rejected although the live object is
        unchanged: a retry would fail again.
        """
        before = self._store.get(key)
        if before is None:
            return False
        if seen is not None and exact_version(before) != exact_version(seen):
            raise StaleError
        live = before
        test = [] if seen is None else [version_test(seen)]
        is_versioned = seen is not None or key.resource in VERSIONED
        try:
            if action is Action.SCALE:
                reply = await self._client.patch(key, [*test, *scale_patch(child, live)], JSON_PATCH)
            else:
                live = await self._take_over(key, child, live)
                patch = preparation_patch(child, live)
                if patch:
                    live = await self._client.patch(key, [*test, *patch], JSON_PATCH)
                is_done = patch and is_current(child, live)
                applied = _with_preconditions(child, live, versioned=is_versioned)
                reply = live if is_done else await self._client.apply(key, applied)
        except ApiError as error:
            # 422 as well: for an object with another uid, immutable fields can differ.
            if error.code not in (404, 409, 422) or not await self._has_changed(key, live):
                raise
            if seen is not None:
                raise StaleError from error
            return False
        self._store.put(key.resource, reply)
        if action is Action.SCALE and replicas_of(reply) == replicas_of(child) and not is_current(child, reply):
            return False  # another client has changed another field meanwhile, which is no effect of this patch
        self._record_effect(key, child, reply)
        if (report := of_rollout(key, before, reply)) is not None:
            result.rollouts.append(report)
        return True

    async def _take_over(self, key: Key, child: Object, live: Object) -> Object:
        """Make the operator the only owner of the fields that it applies to an orphan or a copy; return the new object.

        Otherwise, the client that has restored the object would keep the fields that an apply removes. Raises ApiError.
        """
        if controller_of(live) or not has_co_owners(live):
            return live
        applied = await self._client.apply(
            key, _with_preconditions(child, live, versioned=key.resource in VERSIONED), dry_run=True
        )
        # The store does not keep the fields of a field manager.
        patch = takeover(await self._client.get(key) or live, applied)
        uid = {"op": "test", "path": "/metadata/uid", "value": live["metadata"]["uid"]}
        return await self._client.patch(key, [uid, *patch], JSON_PATCH) if patch else live

    def _is_ineffective(self, key: Key, child: Object, seconds: float) -> bool:
        """True if this intent was applied to this child before and had no effect, and neither has changed since.

        `seconds`: after which it is tried again.
        """
        effect, applied = self._ineffective.get(key, ("", 0.0))
        live = self._store.get(key) if effect and time.monotonic() - applied < seconds else None
        return live is not None and effect == _effect(child, live)

    def _record_effect(self, key: Key, child: Object, reply: Object) -> None:
        self._ineffective.pop(key, None)
        if is_current(child, reply):
            return
        self._ineffective[key] = (_effect(child, reply), time.monotonic())
        log.warning("%s: a cluster policy modifies the applied object; not applying again until either changes", key)

    def forget_deleted(self) -> None:
        """Remove the records of children that no longer exist. Called when an owner is deleted."""
        known = {key: effect for key, effect in self._ineffective.items() if self._store.entry(key) is not None}
        self._ineffective = known
        self._rechecks.keep(lambda key: self._store.entry(key) is not None)

    async def _has_changed(self, key: Key, seen: Object | None) -> bool:
        """Read the object again; True if it is not the version in `seen`."""
        return exact_version(await self._refresh(key)) != exact_version(seen)

    async def _refresh(self, key: Key) -> Object | None:
        return await get_live(self._client, self._store, key)

    async def _delete_unwanted(self, cr: Object, resource: Resource, desired_keys: set[Key], result: Result) -> None:
        for key in self._store.owned_by(resource, cr["metadata"]["namespace"], cr["metadata"]["uid"]):
            live = None if key in desired_keys else self._store.get(key)
            if live is None or live["metadata"].get("deletionTimestamp") or not is_controlled_by(live, cr):
                continue
            with result.record_errors(key), self._cooldown.guard(key, DELETION):
                await self._delete(key, live)
                self.reverts.forget(key)
                result.wrote = True

    async def _delete(self, key: Key, live: Object) -> None:
        try:
            await self._client.delete(key, live["metadata"]["uid"], live["metadata"]["resourceVersion"])
        except ApiError as error:
            if error.code not in (404, 409) or await self._refresh(key) is not None:
                raise


def _with_preconditions(child: Object, live: Object, *, versioned: bool) -> Object:
    """The apply of a child that the API server rejects if `live` was recreated; `versioned`: or has changed since."""
    names = ("uid", "resourceVersion") if versioned else ("uid",)
    return {**child, "metadata": {**child["metadata"], **{name: live["metadata"][name] for name in names}}}


def _effect(child: Object, live: Object) -> str:
    """A digest of an intent and of the values that the live child has at its paths."""
    intent = without_times(child)
    return fingerprint({"intent": intent, "uid": live["metadata"]["uid"], "found": projection(live, intent)})


def build_intent(cr: Object, child: Object) -> Object:
    """The complete object to send: the desired child with namespace, owner reference and intent digest."""
    owners = [controller_reference(cr)]
    meta = {**child["metadata"], "namespace": cr["metadata"]["namespace"], "ownerReferences": owners}
    return with_intent({**child, "metadata": meta})
