"""Bring the children of one object to what is desired, with the least possible writes."""

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
from memcached_operator.reconcile.compare import INTENT, fingerprint, owned, signed
from memcached_operator.reconcile.ownership import (
    Action,
    Step,
    decide,
    is_current,
    is_ours,
    migration_patch,
    owner_reference,
)

log = logging.getLogger(__name__)

CONFLICT_PERIOD = 10.0
"""Seconds until an object that stands in the way, or a namespace, is looked at again: they are not watched."""

WAIT_PERIOD = 1.0
"""Seconds until a child that is being deleted is looked at again, should the event of its deletion be missed."""


ATTEMPTS = 3
"""Times a child is decided on at once, where it was not what was last seen of it."""

COOLDOWN = 0.3
"""Seconds for which a write that failed is not tried again: less than the shortest back-off. Events would bring it back
many times per second while pods come and go."""

DELETION = "deletion"
"""Stands for the digest of an intent where a child is to go."""

PERSISTENT = 3
"""A passing error becomes Degraded when it has come so many times in a row."""


@dataclass
class Outcome:
    """What came of applying the children: troubles for the status, and when to look again.

    `patient`: errors that pass by themselves are told as progress for now. `created`: a child is new.
    """

    tolerant: bool = True
    created: bool = False
    problems: list[Problem] = field(default_factory=list[Problem])
    errors: list[ApiError] = field(default_factory=list[ApiError])
    requeue_after: float | None = None

    def block(self, problem: Problem, seconds: float) -> None:
        """Something stands in the way; look again in so many seconds, or earlier."""
        self.problems.append(problem)
        self.requeue_after = seconds if self.requeue_after is None else min(self.requeue_after, seconds)

    @contextmanager
    def record_errors(self, key: Key) -> Generator[None]:
        """An error of the block is noted, not raised: the status must not claim what was not applied."""
        try:
            yield
        except ApiError as error:
            if error.namespace_terminating:
                self.block(Problem(c.WAITING_FOR_DELETION, "the namespace is being deleted"), CONFLICT_PERIOD)
                return
            self.errors.append(error)
            told = f"{key.resource.kind} {key.name} is not applied: {error.message}"
            passing = self.tolerant and not error.permanent
            self.problems.append(Problem(c.ROLLING_OUT if passing else c.APPLY_FAILED, told))


@dataclass(frozen=True)
class _Failed:
    """A write that failed, and until when it is not to be tried again."""

    intent: str
    error: ApiError
    until: float


class Applier:
    """Creates, changes and deletes children. The store is kept current with every answer."""

    def __init__(self, client: Client, cache: Cache) -> None:
        self._client = client
        self._cache = cache
        self._ineffective: dict[Key, str] = {}
        self._failed: dict[Key, _Failed] = {}

    async def apply_all(
        self, cr: Object, desired: Iterable[Object], owns: Iterable[Resource], failures: int = 0
    ) -> Outcome:
        """Each child on its own: one that fails does not hold up the others.

        `failures`: how many times in a row this has failed; what goes on failing becomes a trouble that is told.
        """
        outcome = Outcome(tolerant=failures + 1 < PERSISTENT)
        wanted: set[Key] = set()
        resources = {(resource.api_version, resource.kind): resource for resource in owns}
        for child in desired:
            resource = resources[child["apiVersion"], child["kind"]]
            key = key_of(resource, child)
            wanted.add(key)
            intended = complete(cr, child)
            with outcome.record_errors(key), self._cooldown(key, intended["metadata"]["annotations"][INTENT]):
                await self._reconcile_child(cr, key, intended, outcome)
        for resource in resources.values():
            await self._delete_unwanted(cr, resource, wanted, outcome)
        return outcome

    @contextmanager
    def _cooldown(self, key: Key, intent: str) -> Generator[None]:
        """What failed is not tried again at once, however many events there are. Raises the ApiError as before."""
        before = self._failed.get(key)
        if before is not None and before.intent == intent and time.monotonic() < before.until:
            # How long to wait was told once: told again, it would begin anew.
            raise replace(before.error, retry_after=None)
        try:
            yield
        except ApiError as error:
            now = time.monotonic()
            self._failed = {other: failed for other, failed in self._failed.items() if failed.until > now}
            self._failed[key] = _Failed(intent, error, now + max(COOLDOWN, error.retry_after or 0))
            raise
        self._failed.pop(key, None)

    async def _reconcile_child(self, cr: Object, key: Key, child: Object, outcome: Outcome) -> None:
        for _ in range(ATTEMPTS):
            step = await self._decide(cr, key, child)
            match step.action:
                case Action.CREATE:
                    done = await self._create(key, child)
                    outcome.created |= done
                case Action.APPLY:
                    done = self._is_ineffective(key, child) or await self._change(key, child)
                case Action.WAIT:
                    # The deletion may have happened while nobody was watching: ask, it costs one read.
                    done = await self._refresh(key) is not None
                    if done:
                        outcome.block(Problem(c.WAITING_FOR_DELETION, step.message), WAIT_PERIOD)
                case Action.CONFLICT:
                    done = True
                    remedy = f"delete or rename it, or give this {cr['kind']} another name"
                    problem = Problem(c.CONFLICT, f"{step.message}; it is left untouched: {remedy}")
                    outcome.block(problem, CONFLICT_PERIOD)
                case Action.SKIP:
                    done = True
            if done:
                return
        raise ApiError(409, "Conflict", f"{key} changes faster than it can be applied")

    async def _decide(self, cr: Object, key: Key, child: Object) -> Step:
        step = decide(cr, child, self._cache.get(key))
        if step.action is Action.CONFLICT or (step.action is Action.CREATE and cr.get("status")):
            # What is not ours is not watched: it may be gone by now, or be there where nothing should be missing.
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

    async def _change(self, key: Key, child: Object) -> bool:
        """Apply to the very object that was decided on; False where another state, or another object, is there.

        What is refused although that very state is there raises the ApiError: another try would be no better.
        """
        live = self._cache.get(key)
        if live is None:
            return False
        # The uid as precondition: a child of the same name made meanwhile by somebody else is refused.
        applied = {**child, "metadata": {**child["metadata"], "uid": live["metadata"]["uid"]}}
        try:
            patch = migration_patch(live)
            if patch:
                live = await self._client.patch(key, patch, JSON_PATCH)
            reply = await self._client.apply(key, applied)
        except ApiError as error:
            # 422 too: of an object with another uid, more than its uid may be immutable.
            if error.code in (404, 409, 422) and await self._has_changed(key, live):
                return False
            raise
        self._cache.put(key.resource, reply)
        self._note_effect(key, child, reply)
        return True

    def _is_ineffective(self, key: Key, child: Object) -> bool:
        """True where this intent was applied to this child before, and its owned values are what came of that."""
        live = self._cache.get(key)
        return live is not None and self._ineffective.get(key) == _effect(child, live)

    def _note_effect(self, key: Key, child: Object, reply: Object) -> None:
        self._ineffective.pop(key, None)
        if is_current(child, reply):
            return
        self._ineffective[key] = _effect(child, reply)
        log.warning("%s: a policy of the cluster changes what is applied; it is left so until either changes", key)

    def forget_deleted(self) -> None:
        """An object is deleted: forget what applying had no effect on, where it is deleted too."""
        known = {key: effect for key, effect in self._ineffective.items() if self._cache.entry(key) is not None}
        self._ineffective = known

    async def _has_changed(self, key: Key, seen: Object | None) -> bool:
        """Look anew; True where what is there is not what was seen."""
        return _state(await self._refresh(key)) != _state(seen)

    async def _refresh(self, key: Key) -> Object | None:
        return await get_live(self._client, self._cache, key)

    async def _delete_unwanted(self, cr: Object, resource: Resource, wanted: set[Key], outcome: Outcome) -> None:
        for live in list(self._cache.owned_by(resource, cr["metadata"]["uid"])):
            key = key_of(resource, live)
            if key in wanted or live["metadata"].get("deletionTimestamp") or not is_ours(cr, live):
                continue
            with outcome.record_errors(key), self._cooldown(key, DELETION):
                await self._delete(key, live)

    async def _delete(self, key: Key, live: Object) -> None:
        try:
            await self._client.delete(key, live["metadata"]["uid"], live["metadata"]["resourceVersion"])
        except ApiError as error:
            if error.code not in (404, 409) or await self._refresh(key) is not None:
                raise


def _state(obj: Object | None) -> tuple[str, str] | None:
    return None if obj is None else (obj["metadata"]["uid"], obj["metadata"]["resourceVersion"])


def _effect(child: Object, live: Object) -> str:
    """A digest of an intent and of what this very child has in its place."""
    return fingerprint({"intent": child, "uid": live["metadata"]["uid"], "found": owned(live, child)})


def complete(cr: Object, child: Object) -> Object:
    """What is sent for a desired child: with its namespace, its owner and the digest of the intent."""
    meta = {**child["metadata"], "namespace": cr["metadata"]["namespace"], "ownerReferences": [owner_reference(cr)]}
    return signed({**child, "metadata": meta})
