"""Access to objects of the API server. A field that an older operator did not write is empty, never an error."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

GROUP: Final = "cache.example.com"
RESOURCE: Final = f"memcacheds.{GROUP}"
"""With its group, because another operator can have a kind of the same name."""

PROXIES: Final = f"memcachedproxies.{GROUP}"
"""The kind of the proxies in front of a Memcached. An older operator does not have it."""

APP_SERVICES: Final = "appservices.app.example.com"
"""Another kind of the operator."""

Object = Mapping[str, Any]
EMPTY: Final[Object] = {}


def mapping(obj: Object, *path: str) -> Object:
    """The mapping at a path, or an empty one: `mapping(pod, "metadata", "labels")`."""
    for name in path:
        value: Any = obj.get(name)
        obj = cast("Object", value) if isinstance(value, Mapping) else {}
    return obj


def objects(obj: Object, *path: str) -> list[Object]:
    """The list of mappings at a path, or an empty one: `objects(pod, "status", "conditions")`."""
    value: Any = mapping(obj, *path[:-1]).get(path[-1])
    listed = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Object", item) for item in listed if isinstance(item, Mapping)]


def strings(obj: Object, *path: str) -> list[str]:
    """The list of strings at a path, or an empty one: `strings(container, "command")`."""
    value: Any = mapping(obj, *path[:-1]).get(path[-1])
    listed = cast("list[Any]", value) if isinstance(value, list) else []
    return [item for item in listed if isinstance(item, str)]


def text(obj: Object, *path: str) -> str:
    """The string at a path, or an empty one."""
    value: Any = mapping(obj, *path[:-1]).get(path[-1])
    return value if isinstance(value, str) else ""


def integer(obj: Object, *path: str) -> int | None:
    """The integer at a path, or None."""
    value: Any = mapping(obj, *path[:-1]).get(path[-1])
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def ready_pods(cr: Object, size: int | None) -> tuple[int, int]:
    """The ready pods of a Memcached or a MemcachedProxy, and their number in the spec, which is not exceeded.

    `size`: that of the spec; None means 1.
    """
    wanted = 1 if size is None else size
    return min(integer(cr, "status", "readyReplicas") or 0, wanted), wanted


def first(listed: Iterable[Object], field: str, value: str) -> Object:
    """The first of the mappings with this value of a field, or an empty one."""
    return next((obj for obj in listed if obj.get(field) == value), EMPTY)


def is_proxy(cr: Object) -> bool:
    """Whether this is a MemcachedProxy."""
    return text(cr, "kind") == "MemcachedProxy"


def full_name(cr: Object) -> str:
    """The namespace and the name of an object, `NAMESPACE/NAME`, as the commands accept it."""
    return f"{text(cr, 'metadata', 'namespace')}/{text(cr, 'metadata', 'name')}"


def selector(cr: Object) -> str:
    """The label selector of the pods of a Memcached or a MemcachedProxy.

    That of its status, or the labels that every release sets.
    """
    app = "memcached-proxy" if is_proxy(cr) else "memcached"
    labels = {"name": app, "instance": text(cr, "metadata", "name"), "managed-by": "memcached-operator"}
    default = ",".join(f"app.kubernetes.io/{name}={value}" for name, value in labels.items())
    return text(cr, "status", "selector") or default
