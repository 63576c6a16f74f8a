"""Bring the children of one object to what is desired, with the least possible writes."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from memcached_operator.engine.client import JSON_PATCH, ApiError, Client
from memcached_operator.engine.compare import signed
from memcached_operator.engine.kind import Trouble
from memcached_operator.engine.ownership import (
    Action,
    decide,
    handover,
    is_ours,
    owner_reference,
)
from memcached_operator.engine.resource import Key, Object, Resource, key_of
from memcached_operator.engine.store import Store, version_of

CONFLICT_PERIOD = 10.0
"""Seconds until an object that stands in the way is looked at again: it is not watched, because it is not ours."""

WAIT_PERIOD = 1.0
"""Seconds until a child that is being deleted is looked at again, should the event of its deletion be missed."""


@dataclass
class Outcome:
    """What came of applying the children: troubles for the status, and when to look again."""

    troubles: list[Trouble] = field(default_factory=list[Trouble])
    errors: list[ApiError] = field(default_factory=list[ApiError])
    again_in: float | None = None

    def look_again(self, seconds: float) -> None:
        """Look again in so many seconds, or earlier."""
        self.again_in = seconds if self.again_in is None else min(self.again_in, seconds)


class Applier:
    """Creates, changes and deletes children. The store is kept current with every answer."""

    def __init__(self, client: Client, store: Store) -> None:
        self._client = client
        self._store = store

    async def apply_all(self, cr: Object, desired: Iterable[Object], owns: Iterable[Resource]) -> Outcome:
        """Each child on its own: one that fails does not hold up the others."""
        outcome = Outcome()
        wanted: set[Key] = set()
        resources = {(resource.api_version, resource.kind): resource for resource in owns}
        for child in desired:
            resource = resources[child["apiVersion"], child["kind"]]
            key = key_of(resource, child)
            wanted.add(key)
            await self._apply_one(cr, key, _complete(cr, child), outcome)
        for resource in resources.values():
            await self._delete_unwanted(cr, resource, wanted, outcome)
        return outcome

    async def _apply_one(self, cr: Object, key: Key, child: Object, outcome: Outcome) -> None:
        try:
            await self._bring(cr, key, child, outcome)
        except ApiError as error:
            outcome.errors.append(error)
            if error.refused:
                outcome.troubles.append(Trouble("ApplyFailed", f"{key.resource.kind} {key.name}: {error.message}"))

    async def _bring(self, cr: Object, key: Key, child: Object, outcome: Outcome) -> None:
        step = decide(cr, child, self._store.get(key))
        if step.action is Action.CONFLICT:
            step = decide(cr, child, await self._refresh(key))
        if step.action is Action.CREATE and not await self._create(key, child):
            step = decide(cr, child, await self._refresh(key))
            if step.action is Action.CREATE:
                raise ApiError(409, "Conflict", f"{key} came and went while it was being created")
        match step.action:
            case Action.APPLY:
                await self._change(key, child)
            case Action.WAIT:
                outcome.troubles.append(Trouble("WaitingForDeletion", step.why))
                outcome.look_again(WAIT_PERIOD)
                # The deletion may have happened while nobody was watching: ask, it costs one read.
                await self._refresh(key)
            case Action.CONFLICT:
                remedy = f"delete or rename it, or give this {cr['kind']} another name"
                outcome.troubles.append(Trouble("Conflict", f"{step.why}; it is left untouched: {remedy}"))
                outcome.look_again(CONFLICT_PERIOD)
            case _:
                pass

    async def _create(self, key: Key, child: Object) -> bool:
        try:
            self._store.put(key.resource, await self._client.create(key, child))
        except ApiError as error:
            if error.reason == "AlreadyExists":
                return False
            raise
        return True

    async def _change(self, key: Key, child: Object) -> None:
        live = self._store.get(key)
        if live is not None and handover(live):
            live = await self._hand_over(key, live)
        if live is None:
            raise ApiError(409, "Conflict", f"{key} is gone")
        # The uid as precondition: a child of the same name made meanwhile by somebody else is refused.
        applied = {**child, "metadata": {**child["metadata"], "uid": live["metadata"]["uid"]}}
        self._store.put(key.resource, await self._client.apply(key, applied))

    async def _hand_over(self, key: Key, live: Object) -> Object | None:
        try:
            await self._client.patch(key, handover(live), JSON_PATCH)
        except ApiError as error:
            if error.code not in (404, 422):
                raise
            # The entry is no longer where it was last seen: look again.
            fresh = await self._refresh(key)
            if fresh is not None and handover(fresh):
                await self._client.patch(key, handover(fresh), JSON_PATCH)
            return fresh
        return live

    async def _refresh(self, key: Key) -> Object | None:
        live = await self._client.get(key)
        if live is None:
            known = self._store.get(key)
            if known is not None:
                self._store.remove(key, version_of(known))
            return None
        live.setdefault("apiVersion", key.resource.api_version)
        live.setdefault("kind", key.resource.kind)
        self._store.put(key.resource, live)
        return self._store.get(key)

    async def _delete_unwanted(self, cr: Object, resource: Resource, wanted: set[Key], outcome: Outcome) -> None:
        for live in list(self._store.owned_by(resource, cr["metadata"]["uid"])):
            key = key_of(resource, live)
            if key in wanted or live["metadata"].get("deletionTimestamp") or not is_ours(cr, live):
                continue
            try:
                await self._client.delete(key, live["metadata"]["uid"], live["metadata"]["resourceVersion"])
            except ApiError as error:
                if error.code == 404:
                    self._store.remove(key, version_of(live))
                else:
                    outcome.errors.append(error)


def _complete(cr: Object, child: Object) -> Object:
    meta = {**child["metadata"], "namespace": cr["metadata"]["namespace"], "ownerReferences": [owner_reference(cr)]}
    return signed({**child, "metadata": meta})
