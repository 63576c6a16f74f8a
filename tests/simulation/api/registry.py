"""Writes: create, update, patch, apply and delete (k8s.io/apiserver, pkg/endpoints/handlers and pkg/registry)."""

import random
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple, cast

from memcached_operator.kube.resource import Key, Object, nested_map
from simulation.api import managed_fields, services
from simulation.api.errors import (
    Cause,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    invalid_value,
    modified,
    not_found,
)
from simulation.api.kinds import KINDS, NAMESPACES, SERVICES, Kind
from simulation.api.managed_fields import Write
from simulation.api.requests import namespace_key
from simulation.api.storage import Storage
from simulation.api.strategies import prepare_create, prepare_update, validate

NAME_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""The letters of generated names (k8s.io/apimachinery, pkg/util/rand)."""

_STORAGE: Final = {"services": "services/specs", "nodes": "minions"}
"""The directories of resources in etcd whose name is another one."""

Admit = Callable[[Object, Object | None], None]
"""Rejects a new object, or the change of an old one, with a StatusError."""


class Options(NamedTuple):
    """The options of a write. `admit`: the admission plugins for the user."""

    manager: str = "unknown"
    subresource: str = ""
    dry_run: bool = False
    force: bool = False
    admit: Admit | None = None


def timestamp(time: datetime) -> str:
    """A time as the API server writes it."""
    return time.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


class Registry:
    """Writes objects to the storage."""

    def __init__(self, storage: Storage, now: Callable[[], datetime], chance: random.Random) -> None:
        self._storage = storage
        self._now = now
        self._chance = chance
        self._allocator = services.Allocator(chance)

    def _write_of(self, kind: Kind, options: Options) -> Write:
        is_scale = options.subresource == "scale"  # whose entries have no time (managedfields/scalehandler.go)
        return Write(
            options.manager,
            kind.resource.api_version,
            "" if is_scale else timestamp(self._now()),
            options.subresource,
            kind.reset_fields(options.subresource),
            kind.only_fields(options.subresource),
        )

    def create(self, kind: Kind, key: Key, obj: Object, options: Options) -> Object:
        """Create an object. `key`: without a name, the object has one or gets one. Raises StatusError."""
        new = kind.decoded(obj)
        meta = new["metadata"]
        self._check_place(kind, key, meta)
        entries = nested_map(obj, "metadata").get("managedFields")
        new["metadata"].pop("resourceVersion", None)
        fields = managed_fields.updated(kind.type, kind.blank(), new, entries, self._write_of(kind, options))
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = self._free_name(key, meta["generateName"])
        return self._create(kind, key._replace(name=meta.get("name", "")), new, fields, options)

    def _create(self, kind: Kind, key: Key, new: Object, fields: list[Object], options: Options) -> Object:
        meta = new["metadata"]
        self._check_namespace(key)
        if not key.name:
            raise invalid(
                kind.resource,
                "",
                Cause("FieldValueRequired", "Required value: name or generateName is required", "metadata.name"),
            )
        meta["uid"] = str(uuid.UUID(int=self._chance.getrandbits(128), version=4))
        meta["creationTimestamp"] = timestamp(self._now())
        prepare_create(kind, new)
        if kind.resource == SERVICES:
            services.complete(new, None)
            self._allocate(key, new, None)
        validate(kind, new, None)
        if fields:
            meta["managedFields"] = fields
        if options.admit is not None:
            options.admit(new, None)
        live = self._storage.get(key)
        if live is not None:
            raise already_exists(kind.resource, key.name, deleting="deletionTimestamp" in live["metadata"])
        return new if options.dry_run else self._storage.put(key, new)

    def _free_name(self, key: Key, prefix: str) -> str:
        while True:
            name = prefix + "".join(self._chance.choice(NAME_LETTERS) for _ in range(5))
            if self._storage.get(key._replace(name=name)) is None:
                return name

    def _check_place(self, kind: Kind, key: Key, meta: Object) -> None:
        """Check that name and namespace are those of the path, and set the namespace. Raises StatusError."""
        if key.name and not meta.get("name"):
            message = f"the name of the object ({key.name} based on URL) was undeterminable: name must be provided"
            raise bad_request(message)
        if kind.namespaced:
            if meta.get("namespace", key.namespace) != key.namespace:
                raise bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request"
                )
            meta["namespace"] = key.namespace
        if key.name and meta.get("name", key.name) != key.name:
            name = meta["name"]
            raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({key.name})")

    def _check_namespace(self, key: Key) -> None:
        """Check that objects can be created in a namespace (the admission plugin NamespaceLifecycle)."""
        if not key.namespace:
            return
        namespace = self._storage.get(namespace_key(key.namespace))
        if namespace is None:
            raise not_found(NAMESPACES, key.namespace)
        if namespace["status"].get("phase") == "Terminating":
            problem = f"unable to create new content in namespace {key.namespace} because it is being terminated"
            message = f"namespace {key.namespace} is being terminated"
            cause = Cause("NamespaceTerminating", message, "metadata.namespace")
            raise forbidden(key.resource, key.name, problem, [cause])

    def _allocate(self, key: Key, new: Object, old: Object | None) -> None:
        others = [obj for other, obj in self._storage.of(SERVICES).items() if other != key]
        self._allocator.allocate(new, old, others)

    def update(self, kind: Kind, key: Key, obj: Object, options: Options) -> tuple[Object, bool]:
        """Replace an object (PUT); returns it, and whether it was created. Raises StatusError."""
        new = kind.decoded(obj)
        self._check_place(kind, key, new["metadata"])
        if kind.created_by_put and self._storage.get(key) is None and not options.subresource:
            return self.create(kind, key, obj, options), True
        live = self.existing(kind, key)
        uid = new["metadata"].get("uid")
        if uid is not None and uid != live["metadata"]["uid"]:
            problem = (
                f"StorageError: invalid object, Code: 4, Key: {_storage_key(key)}, ResourceVersion: 0, "
                f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, "
                f"UID in object meta: {live['metadata']['uid']}"
            )
            raise conflict(kind.resource, key.name, problem)
        return self._updated(kind, key, live, obj, options, is_put=True), False

    def existing(self, kind: Kind, key: Key) -> Object:
        """The stored object. Raises StatusError."""
        live = self._storage.get(key)
        if live is None:
            raise not_found(kind.resource, key.name)
        return live

    def patch(self, kind: Kind, key: Key, patch: Callable[[Object], Object], options: Options) -> Object:
        """Change an object by a function, which must not mutate it. Raises StatusError."""
        live = self.existing(kind, key)
        return self._updated(kind, key, live, patch(live), options)

    def _updated(
        self, kind: Kind, key: Key, live: Object, obj: Object, options: Options, *, is_put: bool = False
    ) -> Object:
        new = kind.decoded(obj, live)
        self._check_place(kind, key, new["metadata"])
        if is_put or "resourceVersion" not in new["metadata"]:
            self._check_version(kind, new, live, is_put=is_put)
        entries = None if options.subresource else nested_map(obj, "metadata").get("managedFields")
        fields = managed_fields.updated(kind.type, live, new, entries, self._write_of(kind, options))
        return self._store(kind, key, live, new, fields, options)

    @staticmethod
    def _check_version(kind: Kind, new: Object, live: Object, *, is_put: bool) -> None:
        """Fill in the version of an unconditional update. Raises StatusError if there must be one."""
        meta = new["metadata"]
        if meta.get("resourceVersion"):
            return
        if is_put and kind.versioned:
            cause = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid(kind.resource, new["metadata"]["name"], cause, kind=kind.resource.plural)
        meta["resourceVersion"] = live["metadata"]["resourceVersion"]

    def apply(self, kind: Kind, key: Key, config: Object, options: Options) -> tuple[Object, bool]:
        """Server-side apply; returns the object, and whether it was created. Raises StatusError."""
        live, meta = self._storage.get(key), cast("Object", config.get("metadata") or {})
        config = {**config, "metadata": meta}
        write = self._write_of(kind, options)
        if live is None:
            if uid := meta.get("uid"):
                problem = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise conflict(kind.resource, key.name, problem)
            merged, fields = managed_fields.applied(kind.type, kind.blank(), config, write, force=options.force)
            new = kind.decoded(merged)
            self._check_place(kind, key, new["metadata"])
            return self._create(kind, key, new, fields, options), True
        merged, fields = managed_fields.applied(kind.type, live, config, write, force=options.force)
        new = kind.decoded(merged, live)
        self._check_place(kind, key, new["metadata"])
        return self._store(kind, key, live, new, fields, options), False

    def _store(self, kind: Kind, key: Key, live: Object, new: Object, fields: list[Object], options: Options) -> Object:
        """Store the next version of an object, or remove it if it is being deleted and nothing holds it any more."""
        meta, before = new["metadata"], live["metadata"]
        if meta.get("resourceVersion", before["resourceVersion"]) != before["resourceVersion"]:
            raise modified(kind.resource, key.name)
        meta["resourceVersion"] = before["resourceVersion"]
        if kind.resource == SERVICES and not options.subresource:
            services.complete(new, live)
        prepare_update(kind, new, live, options.subresource)
        meta = new["metadata"]
        if kind.resource == SERVICES:
            validate(kind, new, live, options.subresource)
            self._allocate(key, new, live)
        else:
            validate(kind, new, live, options.subresource)
        _set_fields(meta, managed_fields.without_new_times(before.get("managedFields"), fields))
        if options.admit is not None:
            options.admit(new, live)
        if new == live:
            return live
        _set_fields(meta, fields)
        if options.dry_run:
            return new
        if (
            "deletionTimestamp" in before
            and not meta.get("finalizers")
            and not before.get("deletionGracePeriodSeconds")
        ):
            self._storage.remove(key, new)
            return new
        return self._storage.put(key, new)


def _storage_key(key: Key) -> str:
    """The key of an object in etcd, as in messages."""
    resource = key.resource
    prefix = _STORAGE.get(resource.plural) or (
        f"{resource.group}/{resource.plural}" if KINDS[resource].custom else resource.plural
    )
    return "/".join(part for part in ("/registry", prefix, key.namespace, key.name) if part)


def _set_fields(meta: Object, fields: list[Object]) -> None:
    if fields:
        meta["managedFields"] = fields
    else:
        meta.pop("managedFields", None)
