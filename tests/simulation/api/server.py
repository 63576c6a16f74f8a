"""The API server: requests in, replies and watch events out."""

import random
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final, cast

import msgspec

from memcached_operator.kube.resource import Key, Object, Resource, key_of
from simulation.api import discovery, scale
from simulation.api.access import Access, Attributes
from simulation.api.deletion import Deleter, options_of
from simulation.api.errors import NotServedError, StatusError, bad_request
from simulation.api.kinds import KINDS, Kind
from simulation.api.patches import json_patch, merge_patch, strategic_merge_patch
from simulation.api.registry import Options, Registry
from simulation.api.requests import NOT_SERVED, Reply, Request, Target, failed, ok, target_of
from simulation.api.selectors import matcher
from simulation.api.storage import Storage, Subscription

__all__ = ["ApiServer", "Reply", "Request", "Subscription"]

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch"}
CONTROLLER: Final = "kube-controller-manager"
"""The field manager of writes by the cluster's controllers."""


class ApiServer:
    """One API server with its storage.

    `now`: the wall clock (UTC). `chance`: chooses uids, addresses and generated names. `user`: of the request that is
    being executed; empty if there is none.
    """

    def __init__(self, now: Callable[[], datetime], chance: random.Random) -> None:
        self.user = ""
        self._storage = Storage()
        self._registry = Registry(self._storage, now, chance)
        self._deleter = Deleter(self._storage, now)
        self._access = Access(self._storage)

    @property
    def objects(self) -> Mapping[Key, Object]:
        """All stored objects. They must not be changed."""
        return self._storage.objects

    def of(self, resource: Resource) -> Mapping[Key, Object]:
        """The stored objects of a resource."""
        return self._storage.of(resource)

    @property
    def version(self) -> int:
        """The resourceVersion of the last write."""
        return self._storage.version

    def handle(self, request: Request) -> Reply:
        """Execute a request that is not a watch."""
        self.user = request.user
        try:
            if (reply := self._handle_other(request)) is not None:
                return reply
            target = target_of(request.path)
            self._authorize(request, target)
            if request.method == "GET":
                return self._get(target) if target.name else self._list(request, target)
            if request.method == "DELETE":
                return self._delete(request, target)
            return self._write(request, target)
        except StatusError as error:
            return failed(error)
        except NotServedError:
            return NOT_SERVED
        finally:
            self.user = ""

    def _handle_other(self, request: Request) -> Reply | None:
        """The response to a request that concerns no object, or None."""
        if request.method == "GET" and (found := discovery.document(request.path)) is not None:
            return ok(found)
        if request.path == discovery.ACCESS_REVIEWS:
            review = request.json()
            attributes = review["spec"]["resourceAttributes"]
            wanted = Attributes(**{name: attributes.get(name, "") for name in Attributes._fields})
            return ok({**review, "status": {"allowed": self._access.allows(review["spec"]["user"], wanted)}}, 201)
        return None

    def _authorize(self, request: Request, target: Target) -> None:
        self._access.check(request.user, _attributes(request, target))

    def _get(self, target: Target) -> Reply:
        live = self._registry.existing(target.kind, target.key)
        if target.subresource == "scale":
            return ok(scale.scale_of(target.kind, live))
        return Reply(200, self._storage.encoded(live))

    def _list(self, request: Request, target: Target) -> Reply:
        query, resource = request.query, target.kind.resource
        match = matcher(query.get("labelSelector", ""), query.get("fieldSelector", ""))
        limit, token = int(query.get("limit") or 0), query.get("continue", "")
        found, version, following, remaining = self._storage.page(resource, target.namespace, match, limit, token)
        meta: Object = {"resourceVersion": str(version)} | ({"continue": ""} if target.kind.custom else {})
        if following:
            meta["continue"] = following
            if not query.get("labelSelector") and not query.get("fieldSelector"):
                meta["remainingItemCount"] = remaining
        head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": meta}
        return Reply(200, b'%b,"items":[%b]}' % (msgspec.json.encode(head)[:-1], self._items(target.kind, found)))

    def _items(self, kind: Kind, found: list[Object]) -> bytes:
        """The objects of a list. Those of built-in types have no `kind` and no `apiVersion`."""
        texts = map(self._storage.encoded, found)
        if kind.custom:
            return b",".join(texts)
        resource = kind.resource
        start = len(msgspec.json.encode({"kind": resource.kind, "apiVersion": resource.api_version}))
        return b",".join(b"{" + text[start:] for text in texts)

    def _write(self, request: Request, target: Target) -> Reply:
        kind, key = target.kind, target.key
        options = self._options(request, target)
        if target.subresource == "scale":
            return ok(scale.write(self._registry, request, target, options))
        match request.method, bool(target.name):
            case "POST", False:
                return self._reply(kind, self._registry.create(kind, key, _typed(kind, request.json()), options), 201)
            case "POST", True if target.subresource == "eviction":
                self._deleter.delete(kind, key, options_of(request.json().get("deleteOptions")))
                return ok({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)
            case "PUT", True:
                obj, created = self._registry.update(kind, key, _typed(kind, request.json()), options)
                return self._reply(kind, obj, 201 if created else 200)
            case "PATCH", True:
                return self._patch(request, target, options)
            case _:
                message = "the server does not allow this method on the requested resource"
                raise StatusError(405, "MethodNotAllowed", message)

    def _patch(self, request: Request, target: Target, options: Options) -> Reply:
        kind, key, body = target.kind, target.key, request.json()
        if request.content_type == APPLY_PATCH:
            if not request.query.get("fieldManager"):
                raise bad_request(
                    'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
                )
            obj, created = self._registry.apply(kind, key, body, options)
            return self._reply(kind, obj, 201 if created else 200)
        patched = self._registry.patch(kind, key, _patch_of(kind, request.content_type, body), options)
        return self._reply(kind, patched)

    def _reply(self, kind: Kind, obj: Object, status: int = 200) -> Reply:
        """A response with an object, which is encoded once if it is stored."""
        is_stored = self._storage.get(key_of(kind.resource, obj)) is obj
        return Reply(status, self._storage.encoded(obj)) if is_stored else ok(obj, status)

    def _options(self, request: Request, target: Target) -> Options:
        admit = partial(self._access.check_owners, request.user, _attributes(request, target))
        return Options(
            request.query.get("fieldManager") or "unknown",
            target.subresource,
            dry_run=request.query.get("dryRun") == "All",
            force=request.query.get("force") == "true",
            admit=admit if request.user else None,
        )

    def _delete(self, request: Request, target: Target) -> Reply:
        body = cast("Object | None", request.json()) if request.body else None
        propagation, dry_run = request.query.get("propagationPolicy", ""), request.query.get("dryRun") == "All"
        options = options_of(body, propagation, dry_run=dry_run)
        if target.name:
            return ok(self._deleter.delete(target.kind, target.key, options))
        match = matcher(request.query.get("labelSelector", ""), request.query.get("fieldSelector", ""))
        found = self._storage.selected(target.kind.resource, target.namespace, match)
        reply = self._list(request._replace(query={**request.query, "limit": "0"}), target)
        for key, _ in found:
            self._deleter.delete(target.kind, key, options)
        return reply

    def watch(self, request: Request, send: Callable[[bytes], None]) -> Reply | Subscription:
        """Start a watch. `send` gets one line per event: at first the history, then each change when it happens."""
        try:
            target = target_of(request.path)
            self._authorize(request, target)
            fields = request.query.get("fieldSelector", "")
            match = matcher(request.query.get("labelSelector", ""), fields)
        except StatusError as error:
            return failed(error)
        except NotServedError:
            return NOT_SERVED
        bookmarks = request.query.get("allowWatchBookmarks") in ("true", "1")
        found = Subscription(target.kind.resource, target.namespace, match, send, bookmarks, self._storage)
        self._storage.watch(found, request.query.get("resourceVersion", ""))
        return found

    def bookmark(self) -> None:
        """Send a BOOKMARK event to all watches that want it."""
        self._storage.bookmark()

    def saved(self) -> Callable[[], None]:
        """Save all objects, as a backup of etcd. The result restores them."""
        return self._storage.saved()

    def compact(self) -> None:
        """Forget the history: earlier versions, and tokens of lists, are expired."""
        self._storage.compact()

    def put(self, obj: Object, subresource: str = "", manager: str = CONTROLLER) -> Object:
        """Create or replace an object as a controller of the cluster; return the stored object.

        Nothing is written if nothing changes. The resourceVersion of `obj` has no effect. `subresource`: write only
        this part of an existing object, such as `status`. `manager`: the field manager. Raises StatusError.
        """
        kind, key = self._kind_and_key(obj)
        options = Options(manager, subresource)
        live = self._storage.get(key)
        if live is None and not subresource:
            return self._registry.create(kind, key, obj, options)
        if live is not None and obj == live:
            return live
        meta = {
            name: value for name, value in obj["metadata"].items() if name not in ("resourceVersion", "managedFields")
        }
        return self._registry.patch(kind, key, lambda _: {**obj, "metadata": meta}, options)

    def _kind_and_key(self, obj: Object) -> tuple[Kind, Key]:
        found = next(
            kind
            for resource, kind in KINDS.items()
            if (resource.kind, resource.api_version) == (obj["kind"], obj["apiVersion"])
        )
        meta = obj["metadata"]
        return found, Key(found.resource, meta.get("namespace", ""), meta.get("name", ""))

    def remove(self, key: Key) -> None:
        """Remove an object finally, whatever its finalizers; nothing happens if it does not exist."""
        if key in self._storage.objects:
            self._storage.remove(key)

    def subscribe(self, changed: Callable[[str, Object], None]) -> None:
        """Call a function with the type (ADDED, MODIFIED or DELETED) and the object of every change."""
        self._storage.listeners.append(changed)


def _attributes(request: Request, target: Target) -> Attributes:
    resource, name = target.kind.resource, target.name
    if request.method == "GET":
        verb = "get" if name else "watch" if request.query.get("watch") in ("true", "1") else "list"
    elif request.method == "DELETE":
        verb = "delete" if name else "deletecollection"
    else:
        verb = VERBS.get(request.method, request.method.lower())
    return Attributes(verb, resource.group, resource.plural, target.subresource, target.namespace, name)


def _typed(kind: Kind, body: Any) -> Object:
    """A body with the metadata that each object has. Raises StatusError."""
    obj = cast("Object", body)
    if obj.get("kind", kind.resource.kind) != kind.resource.kind:
        raise bad_request(
            f'{kind.resource.kind} in version "{kind.resource.version}" cannot be handled as a {obj["kind"]}'
        )
    return obj if obj.get("metadata") else {**obj, "metadata": {}}


def _patch_of(kind: Kind, content_type: str, body: Any) -> Callable[[Object], Object]:
    """The function of a patch. Raises StatusError."""
    match content_type:
        case "application/merge-patch+json":
            return lambda live: merge_patch(live, body)
        case "application/json-patch+json":
            return lambda live: json_patch(live, body)
        case "application/strategic-merge-patch+json" if not kind.custom:
            return lambda live: strategic_merge_patch(kind.type, live, body)
        case _:
            supported = (JSON_PATCH, MERGE_PATCH, *(() if kind.custom else (STRATEGIC_MERGE_PATCH,)), APPLY_PATCH)
            problem = "the body of the request was in an unknown format - accepted media types include: "
            raise StatusError(415, "UnsupportedMediaType", problem + ", ".join(supported))
