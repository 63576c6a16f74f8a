"""A small API server in memory: for what happens to an object between two requests of the operator."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any, cast

from memcached_operator.kube.client import FIELD_MANAGER, JSON_PATCH, ApiError, Client
from memcached_operator.kube.resource import Key, Object, Resource, key_of, nested_map

Hook = Callable[[], None]


def raising(error: ApiError) -> Hook:
    """A hook that fails the request."""

    def fail() -> None:
        raise error

    return fail


def merged(live: Any, patch: Any) -> Any:
    """A merge patch, applied."""
    if not isinstance(live, dict) or not isinstance(patch, dict):
        return patch
    old, new = cast("Object", live), cast("Object", patch)
    result = {**old, **{name: merged(old.get(name), value) for name, value in new.items()}}
    return {name: value for name, value in result.items() if value is not None}


@dataclass
class Api:
    """Objects, what is to happen before a request is answered, and what was asked.

    `hooks` are used up one after the other, by verb (create, get, apply, …). `always` stays.
    `policy` changes whatever is written.
    """

    objects: dict[Key, Object] = field(default_factory=dict[Key, Object])
    hooks: dict[str, list[Hook]] = field(default_factory=lambda: defaultdict(list))
    always: dict[str, Hook] = field(default_factory=dict[str, Hook])
    policy: Callable[[Object], Object] = lambda obj: obj
    calls: list[tuple[str, Key]] = field(default_factory=list[tuple[str, Key]])
    statuses: list[Object] = field(default_factory=list[Object])
    version: int = 100

    @property
    def client(self) -> Client:
        """It, where a client is asked for."""
        return cast("Client", self)

    def asked(self, *resources: Resource) -> list[str]:
        """The verbs of the requests about some resources, or about all."""
        return [verb for verb, key in self.calls if not resources or key.resource in resources]

    def put(self, key: Key, obj: Object, **meta: Any) -> Object:
        """Somebody writes an object."""
        self.version += 1
        written = self.policy({**obj, "metadata": {**obj["metadata"], **meta, "resourceVersion": str(self.version)}})
        self.objects[key] = written
        return written

    def replace(self, key: Key) -> Object:
        """Somebody deletes an object and makes another of the same name."""
        live = self.objects.pop(key)
        meta = {"name": key.name, "namespace": key.namespace, "uid": "foreign"}
        kind = {name: live[name] for name in ("apiVersion", "kind")}
        return self.put(key, {**kind, "metadata": meta, "spec": {"theirs": True}})

    async def list(self, resource: Resource, namespace: str | None, selector: str = "") -> tuple[list[Object], str]:
        """Every object of a resource."""
        return [obj for key, obj in self.objects.items() if key.resource == resource], str(self.version)

    async def watch(self, *_: object) -> AsyncGenerator[tuple[str, Object]]:
        """A watch that reports nothing."""
        await asyncio.Event().wait()
        yield "", {}

    async def get(self, key: Key) -> Object | None:
        """One object, or None."""
        self._note("get", key)
        return self.objects.get(key)

    async def create(self, key: Key, obj: Object) -> Object:
        """Create, where there is none."""
        self._note("create", key)
        if key in self.objects:
            raise ApiError(409, "AlreadyExists", f"{key} already exists")
        managed = [{"manager": FIELD_MANAGER, "operation": "Update"}]
        return self.put(key, obj, uid=f"uid-{self.version}", managedFields=managed)

    async def apply(self, key: Key, obj: Object) -> Object:
        """Apply, to an object of the given uid only."""
        self._note("apply", key)
        live = self.objects.get(key)
        if live is None or obj["metadata"].get("uid") != live["metadata"]["uid"]:
            raise ApiError(409, "Conflict", "Precondition failed: UID in precondition")
        return self.put(key, merged(live, obj))

    async def patch(self, key: Key, patch: Any, content_type: str = "", subresource: str = "") -> Object:
        """The patches the engine sends: of a status, and the hand-over of the fields."""
        verb = "migration_patch" if content_type == JSON_PATCH else subresource
        self._note(verb, key)
        live = self.objects.get(key)
        if live is None:
            raise ApiError(404, "NotFound", f"{key} not found")
        if verb == "migration_patch":
            if patch[0]["value"] != live["metadata"]["uid"]:
                raise ApiError(422, "Invalid", "the server rejected our request: testing /metadata/uid failed")
            return self.put(key, live, managedFields=[{"manager": FIELD_MANAGER, "operation": "Apply"}])
        self.statuses.append(merged(nested_map(live, "status"), patch["status"]))
        return self.put(key, {**live, "status": self.statuses[-1]})

    async def delete(self, key: Key, uid: str, resource_version: str) -> None:
        """Delete."""
        self._note("delete", key)
        del self.objects[key]

    def add(self, resource: Resource, obj: Object) -> Object:
        """Somebody writes an object under its own name."""
        return self.put(key_of(resource, obj), obj)

    def _note(self, verb: str, key: Key) -> None:
        self.calls.append((verb, key))
        if self.hooks[verb]:
            self.hooks[verb].pop(0)()
        if verb in self.always:
            self.always[verb]()
