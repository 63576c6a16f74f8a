"""An in-memory API server. Hooks change objects between two requests of the controller."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any, cast

from memcached_operator.kube.client import FIELD_MANAGER, JSON_PATCH, ApiClient, ApiError, Page
from memcached_operator.kube.resource import Key, Object, Resource, key_of, nested_map

Hook = Callable[[], None]


def raising(error: ApiError) -> Hook:
    """A hook that raises this error."""

    def fail() -> None:
        raise error

    return fail


def merged(live: Any, patch: Any) -> Any:
    """The result of a merge patch."""
    if not isinstance(live, dict) or not isinstance(patch, dict):
        return patch
    old, new = cast("Object", live), cast("Object", patch)
    result = {**old, **{name: merged(old.get(name), value) for name, value in new.items()}}
    return {name: value for name, value in result.items() if value is not None}


def _verb_of(patch: Any, content_type: str) -> str:
    """What a patch is for."""
    is_scale = content_type == JSON_PATCH and any(step["path"] == "/spec/replicas" for step in patch)
    return "scale" if is_scale else "preparation_patch"


def _patched(live: Object, patch: list[Object]) -> Object:
    """The result of a JSON patch: of its values in the spec. Raises Invalid if a test fails."""
    meta = live["metadata"]
    tested = {step["path"].rpartition("/")[2]: step["value"] for step in patch if step["op"] == "test"}
    for name in ("uid", "ownerReferences"):
        if name in tested and tested[name] != meta.get(name):
            raise ApiError(422, "Invalid", f"the server rejected our request: testing /metadata/{name} failed")
    changed = {step["path"].removeprefix("/spec/"): step["value"] for step in patch if step["path"].startswith("/spec")}
    if "replicas" not in changed:
        meta = {**meta, "managedFields": [{"manager": FIELD_MANAGER, "operation": "Apply"}]}
    return {**live, "metadata": meta, "spec": {**nested_map(live, "spec"), **changed}}


@dataclass
class Api:
    """Objects, hooks that run before a request is handled, and the recorded requests.

    `hooks`: by verb (create, get, apply, …); each runs once, in order. `always`: by verb; runs for every request.
    `policy`: changes every object that is written. `statuses`: every status that was written.
    """

    objects: dict[Key, Object] = field(default_factory=dict[Key, Object])
    hooks: dict[str, list[Hook]] = field(default_factory=lambda: defaultdict(list))
    always: dict[str, Hook] = field(default_factory=dict[str, Hook])
    policy: Callable[[Object], Object] = lambda obj: obj
    calls: list[tuple[str, Key]] = field(default_factory=list[tuple[str, Key]])
    statuses: list[Object] = field(default_factory=list[Object])
    version: int = 100

    @property
    def client(self) -> ApiClient:
        """This object, typed as a Client."""
        return cast("ApiClient", self)

    def verbs(self, *resources: Resource) -> list[str]:
        """The verbs of all requests, or of those for these resources."""
        return [verb for verb, key in self.calls if not resources or key.resource in resources]

    def put(self, key: Key, obj: Object, **meta: Any) -> Object:
        """Write an object as another client, with a new resourceVersion."""
        self.version += 1
        written = self.policy({**obj, "metadata": {**obj["metadata"], **meta, "resourceVersion": str(self.version)}})
        self.objects[key] = written
        return written

    async def request(self, method: str, path: str) -> Object:
        """What the API server serves: `GET /api/v1` and `GET /version` of Kubernetes 1.35, and no other group."""
        assert method == "GET"
        replies: dict[str, Object] = {
            "/api/v1": {"resources": [{"name": "pods"}, {"name": "pods/resize"}]},
            "/version": {"major": "1", "minor": "35"},
        }
        if path not in replies:
            raise ApiError(404, "", "the server could not find the requested resource")
        return replies[path]

    async def list(self, resource: Resource, namespace: str | None, selector: str = "") -> AsyncGenerator[Page]:
        """All objects of a resource, on one page."""
        found = [obj for key, obj in self.objects.items() if key.resource == resource]
        yield Page(iter(found), len(found), 0, str(self.version))

    async def watch(self, *_: object) -> AsyncGenerator[tuple[str, Object]]:
        """A watch without events."""
        await asyncio.Event().wait()
        yield "", {}

    async def get(self, key: Key) -> Object | None:
        """One object, or None."""
        self._record("get", key)
        return self.objects.get(key)

    async def create(self, key: Key, obj: Object) -> Object:
        """Create an object. Raises AlreadyExists."""
        self._record("create", key)
        if key in self.objects:
            raise ApiError(409, "AlreadyExists", f"{key} already exists")
        managed = [{"manager": FIELD_MANAGER, "operation": "Update"}]
        return self.put(key, obj, uid=f"uid-{self.version}", managedFields=managed)

    async def apply(self, key: Key, obj: Object, *, dry_run: bool = False) -> Object:
        """Apply an object. Raises Conflict if the uid differs, or the resourceVersion if there is one."""
        assert not dry_run, "needs the managedFields of a real API server"
        self._record("apply", key)
        live, meta = self.objects.get(key), obj["metadata"]
        if live is None or meta.get("uid") != live["metadata"]["uid"]:
            raise ApiError(409, "Conflict", "Precondition failed: UID in precondition")
        if meta.get("resourceVersion") not in (None, live["metadata"]["resourceVersion"]):
            raise ApiError(409, "Conflict", "the object has been modified")
        return self.put(key, merged(live, obj))

    async def patch(self, key: Key, patch: Any, content_type: str = "", subresource: str = "") -> Object:
        """A merge patch of a status, or the JSON patch of the number of pods, or that before an apply."""
        verb = subresource or _verb_of(patch, content_type)
        self._record(verb, key)
        live = self.objects.get(key)
        if live is None:
            raise ApiError(404, "NotFound", f"{key} not found")
        if content_type == JSON_PATCH:
            return self.put(key, _patched(live, patch))
        self.statuses.append(merged(nested_map(live, "status"), patch["status"]))
        return self.put(key, {**live, "status": self.statuses[-1]})

    async def delete(self, key: Key, uid: str, resource_version: str) -> Object:
        """Delete an object."""
        self._record("delete", key)
        del self.objects[key]
        return {"kind": "Status"}

    def add(self, resource: Resource, obj: Object) -> Object:
        """Write an object as another client; the key is derived from it."""
        return self.put(key_of(resource, obj), obj)

    def _record(self, verb: str, key: Key) -> None:
        self.calls.append((verb, key))
        if self.hooks[verb]:
            self.hooks[verb].pop(0)()
        if verb in self.always:
            self.always[verb]()
