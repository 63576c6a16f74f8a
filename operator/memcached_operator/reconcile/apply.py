"""Applies the desired children of one object with as few writes as possible."""

import logging
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from memcached_api import conditions as c
from memcached_operator.cache.cache import Cache
from memcached_operator.cache.live import get_live
from memcached_operator.kind import Problem
from memcached_operator.kube.client import JSON_PATCH, ApiError, Client
from memcached_operator.kube.resource import Key, Object, Resource, key_of
from memcached_operator.reconcile.compare import INTENT_ANNOTATION, fingerprint, projection, with_intent
from memcached_operator.reconcile.ownership import (
    Action,
    Decision,
    controller_reference,
    decide,
    is_controlled_by,
    is_current,
    migration_patch,
)

log = logging.getLogger(__name__)

CONFLICT_PERIOD = 10.0
"""Seconds until a conflicting object or a terminating namespace is checked again: neither is watched."""

WAIT_PERIOD = 1.0
"""Seconds until a child that is being deleted is checked again, in case its DELETED event is missed."""


MAX_ATTEMPTS = 3
"""Attempts per reconciliation to apply a child whose live state differs from the cache."""

COOLDOWN = 0.3
"""Seconds before a failed write is retried. Shorter than the shortest backoff. Without it, events would cause many
retries per second while pods change."""

DELETION = "deletion"
"""Used instead of an intent digest for the deletion of a child."""

DEGRADED_THRESHOLD = 3
"""Consecutive failures after which a transient error is reported as Degraded."""


@dataclass
class Outcome:
    """The result of applying the children: problems for the status, errors, and when to requeue.

    `tolerant`: report transient errors as Progressing. `created`: at least one child was created.
    """

    tolerant: bool = True
    created: bool = False
    problems: list[Problem] = field(default_factory=list[Problem])
    errors: list[ApiError] = field(default_factory=list[ApiError])
    requeue_after: float | None = None

    def block(self, problem: Problem, seconds: float) -> None:
        """Add a problem that prevents applying a child, and requeue after at most `seconds`."""
        self.problems.append(problem)
        self.requeue_after = seconds if self.requeue_after is None else min(self.requeue_after, seconds)

    @contextmanager
    def record_errors(self, key: Key) -> Generator[None]:
        """Record an ApiError of the block as a problem instead of raising it, so that the status reports it."""
        try:
            yield
        except ApiError as error:
            if error.namespace_terminating:
                self.block(Problem(c.WAITING_FOR_DELETION, "The namespace is being deleted"), CONFLICT_PERIOD)
                return
            self.errors.append(error)
            message = f"{key.resource.kind} {key.name} cannot be applied: {error.message}"
            transient = self.tolerant and not error.permanent
            self.problems.append(Problem(c.ROLLING_OUT if transient else c.APPLY_FAILED, message))


@dataclass(frozen=True)
class _FailedWrite:
    """A failed write, and the time until which it is not retried."""

    intent: str
    error: ApiError
    until: float


class Applier:
    """Creates, updates and deletes children. Every response updates the cache."""

    def __init__(self, client: Client, cache: Cache) -> None:
        self._client = client
        self._cache = cache
        self._ineffective: dict[Key, str] = {}
        self._failed: dict[Key, _FailedWrite] = {}

    async def apply_all(
        self, cr: Object, desired: Iterable[Object], owns: Iterable[Resource], failures: int = 0
    ) -> Outcome:
        """Apply each child independently: a failure does not block the others.

        `failures`: consecutive failures so far; from DEGRADED_THRESHOLD on, transient errors are reported as Degraded.
        """
        outcome = Outcome(tolerant=failures + 1 < DEGRADED_THRESHOLD)
        wanted: set[Key] = set()
        resources = {(resource.api_version, resource.kind): resource for resource in owns}
        for child in desired:
            resource = resources[child["apiVersion"], child["kind"]]
            key = key_of(resource, child)
            wanted.add(key)
            intended = build_intent(cr, child)
            with (
                outcome.record_errors(key),
                self._cooldown(key, intended["metadata"]["annotations"][INTENT_ANNOTATION]),
            ):
                await self._reconcile_child(cr, key, intended, outcome)
        for resource in resources.values():
            await self._delete_unwanted(cr, resource, wanted, outcome)
        return outcome

    @contextmanager
    def _cooldown(self, key: Key, intent: str) -> Generator[None]:
        """Skip a write that failed recently, and raise its ApiError again."""
        before = self._failed.get(key)
        if before is not None and before.intent == intent and time.monotonic() < before.until:
            # Without retry_after: the server's delay is already scheduled, and must not restart.
            raise replace(before.error, retry_after=None)
        try:
            yield
        except ApiError as error:
            now = time.monotonic()
            self._failed = {other: failed for other, failed in self._failed.items() if failed.until > now}
            self._failed[key] = _FailedWrite(intent, error, now + max(COOLDOWN, error.retry_after or 0))
            raise
        self._failed.pop(key, None)

    async def _reconcile_child(self, cr: Object, key: Key, child: Object, outcome: Outcome) -> None:
        for _ in range(MAX_ATTEMPTS):
            step = await self._decide(cr, key, child)
            match step.action:
                case Action.CREATE:
                    done = await self._create(key, child)
                    outcome.created |= done
                case Action.APPLY:
                    done = self._is_ineffective(key, child) or await self._apply(key, child)
                case Action.WAIT:
                    # The DELETED event may have been missed, so read the object.
                    done = await self._refresh(key) is not None
                    if done:
                        outcome.block(Problem(c.WAITING_FOR_DELETION, step.message), WAIT_PERIOD)
                case Action.CONFLICT:
                    done = True
                    remedy = f"Delete or rename it, or use another name for this {cr['kind']}"
                    problem = Problem(c.CONFLICT, f"{step.message}. The object is not modified. {remedy}")
                    outcome.block(problem, CONFLICT_PERIOD)
                case Action.SKIP:
                    done = True
            if done:
                return
        raise ApiError(409, "Conflict", f"{key} kept changing during {MAX_ATTEMPTS} attempts to apply it")

    async def _decide(self, cr: Object, key: Key, child: Object) -> Decision:
        step = decide(cr, child, self._cache.get(key))
        if step.action is Action.CONFLICT or (step.action is Action.CREATE and cr.get("status")):
            # Objects without the operator's label are not watched, so the cache may be wrong in both cases.
            step = decide(cr, child, await self._refresh(key))
        return step

    async def _create(self, key: Key, child: Object) -> bool:
        try:
            self._cache.put(key.resource, await self._client.create(key, child))
        except ApiError as error:
            if error.reason == "AlreadyExists" and await self._has_changed(key, None):
                return False
            raise
        return True

    async def _apply(self, key: Key, child: Object) -> bool:
        """Apply a child. Returns False if the live object has changed since the decision.

        Raises ApiError if the write is rejected although the live object is unchanged: a retry would fail again.
        """
        live = self._cache.get(key)
        if live is None:
            return False
        # The uid is a precondition: the API server rejects the write if the object was recreated in the meantime.
        applied = {**child, "metadata": {**child["metadata"], "uid": live["metadata"]["uid"]}}
        try:
            patch = migration_patch(live)
            if patch:
                live = await self._client.patch(key, patch, JSON_PATCH)
            reply = await self._client.apply(key, applied)
        except ApiError as error:
            # 422 as well: for an object with another uid, immutable fields can differ.
            if error.code in (404, 409, 422) and await self._has_changed(key, live):
                return False
            raise
        self._cache.put(key.resource, reply)
        self._record_effect(key, child, reply)
        return True

    def _is_ineffective(self, key: Key, child: Object) -> bool:
        """True if this intent was applied to this child before and had no effect, and neither has changed since."""
        live = self._cache.get(key)
        return live is not None and self._ineffective.get(key) == _effect(child, live)

    def _record_effect(self, key: Key, child: Object, reply: Object) -> None:
        self._ineffective.pop(key, None)
        if is_current(child, reply):
            return
        self._ineffective[key] = _effect(child, reply)
        log.warning("%s: a cluster policy modifies the applied object; not applying again until either changes", key)

    def forget_deleted(self) -> None:
        """Remove the records of children that no longer exist. Called when an owner is deleted."""
        known = {key: effect for key, effect in self._ineffective.items() if self._cache.entry(key) is not None}
        self._ineffective = known

    async def _has_changed(self, key: Key, seen: Object | None) -> bool:
        """Read the object again; True if it is not the version in `seen`."""
        return _version(await self._refresh(key)) != _version(seen)

    async def _refresh(self, key: Key) -> Object | None:
        return await get_live(self._client, self._cache, key)

    async def _delete_unwanted(self, cr: Object, resource: Resource, wanted: set[Key], outcome: Outcome) -> None:
        for live in list(self._cache.owned_by(resource, cr["metadata"]["uid"])):
            key = key_of(resource, live)
            if key in wanted or live["metadata"].get("deletionTimestamp") or not is_controlled_by(live, cr):
                continue
            with outcome.record_errors(key), self._cooldown(key, DELETION):
                await self._delete(key, live)

    async def _delete(self, key: Key, live: Object) -> None:
        try:
            await self._client.delete(key, live["metadata"]["uid"], live["metadata"]["resourceVersion"])
        except ApiError as error:
            if error.code not in (404, 409) or await self._refresh(key) is not None:
                raise


def _version(obj: Object | None) -> tuple[str, str] | None:
    return None if obj is None else (obj["metadata"]["uid"], obj["metadata"]["resourceVersion"])


def _effect(child: Object, live: Object) -> str:
    """A digest of an intent and of the values that the live child has at its paths."""
    return fingerprint({"intent": child, "uid": live["metadata"]["uid"], "found": projection(live, child)})


def build_intent(cr: Object, child: Object) -> Object:
    """The complete object to send: the desired child with namespace, owner reference and intent digest."""
    owners = [controller_reference(cr)]
    meta = {**child["metadata"], "namespace": cr["metadata"]["namespace"], "ownerReferences": owners}
    return with_intent({**child, "metadata": meta})
