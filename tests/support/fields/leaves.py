"""The fields of a spec, from the schema of the CRD, and valid values for each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from faults.schemas import spec_schema
from faults.workloads import IMAGE
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.resource import Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from support.fields.wholes import WHOLES

BASES: dict[str, Object] = {"Memcached": {"image": IMAGE}, "AppService": {"image": IMAGE}}
RESOURCES = (MEMCACHEDS, APPSERVICES)
Path = tuple[str, ...]
"""Path of a field: names, `[]` for the items of a list, and keys of a map."""
PAUSED: Object = {"rollout": {"paused": True}}
BESIDE: dict[Path, Object] = {
    ("podDisruptionBudget",): {"size": 2},  # there is no PodDisruptionBudget for a single pod
    ("service", "perPod"): {"identity": "Stable"},
    ("rollout", "warmUp"): {"identity": "Stable"},
    ("cache", "warmRestart"): {"identity": "Stable"},
    ("cache", "extstore"): {"identity": "Stable"},
    ("scaling",): {"identity": "Stable"},
    # Without it there is no agent.
    ("agent",): {"monitoring": {}},
    ("monitoring", "podMonitor"): {"monitoring": {"podMonitor": {}}},
    ("monitoring", "rules"): {"monitoring": {"rules": {}}},
    ("networkPolicy", "metricsFrom"): {"monitoring": {}},
    ("monitoring", "tls"): {"tls": {"secretName": "aa"}},
    # What the values name does not exist, so pods would never start.
    **{
        ("podTemplate", "spec", name): PAUSED
        for name in ("nodeSelector", "affinity", "priorityClassName", "runtimeClassName", "serviceAccountName")
    },
}
"""What a spec also has, by the beginning of the field's path."""
WITHIN: dict[Path, Object] = {
    ("tls", "clientCASecretName"): {"clientAuth": "Require"},
    ("tls", "plaintext"): {"port": 11212},
    **{
        ("cache", "extstore", name): {"memory": "1Gi"}
        for name in ("size", "volume", "storageClassName", "itemAge", "threads")
    },
}
"""What the field's top-level parent also has, unless it is absent or empty."""
RESOURCE_KEYS = ("cpu", "memory")
TEXT_KEYS = ("team",)
"""Keys of maps of quantities, and of maps of texts, such as labels."""

ABSENT = object()
"""Instead of a value: the field is left out."""

VALUES: dict[str, tuple[Any, Any]] = {
    "size": (2, 3),
    "identity": ("Pooled", "Stable"),
    "image": ("example.com/app:2", "example.com/app:3"),
    "maxConnections": (2000, 3000),
    "evictions": (False, True),
    "verbosity": (0, 2),
    "extraArgs[]": ("--disable-cas", "-o track_sizes"),
    "fieldPath": ("metadata.name", "metadata.namespace"),
    "apiVersion": ("v1", "v1"),
    "resource": ("limits.cpu", "limits.memory"),
    "divisor": ("1m", "1"),  # only cpu has fractions, and it is the first resource
    "targetPort": (8080, 8081),
    "nodePort": (30080, 30081),  # Kubernetes does not allocate node ports below 30086 itself
    "runAsNonRoot": (True, True),  # false is denied
    "enabled": (False, True),
    "maxUnavailable": ("50%", 2),
    "maxSurge": ("50%", 2),
    "restartedAt": ("2026-11-22T10:00:00Z", "2026-11-23T10:00:00+01:00"),
    "cidr": ("10.0.0.0/8", "10.0.0.0/9"),
    "interval": ("30s", "1m30s"),
    "hitRatio": (60, 70),
    "timeout": ("5m", "1h30m"),
    "duration": ("30m", "1h30m"),
    "minRequests": (10, 20),
    "clientAuth": ("Request", "Require"),
    "clientCASecretName": ("cc", "dd"),
    "plaintext": ("Enabled", "Disabled"),
    "minVersion": ("1.3", "1.2"),
    "volume": ("EmptyDir", "Claim"),
    "itemAge": ("0s", "24h"),
    "except[]": ("10.1.0.0/16", "10.2.0.0/16"),
    **WHOLES,
}
"""Two valid values of fields whose schema does not suffice, by the last name of the path.

The first value must have another effect than leaving the field out.
"""

AMOUNTS: dict[str, tuple[str, str]] = {
    "cpu": ("150m", "300m"),
    "memory": ("192Mi", "256Mi"),
    "maxItemSize": ("2Mi", "4Mi"),
    "size": ("2Gi", "3Gi"),
}
"""The same of quantities."""


@dataclass(frozen=True)
class Items:
    """Instead of a value: a list with one item for each of these values."""

    values: tuple[Any, Any]


@dataclass(frozen=True)
class Leaf:
    """One field of a spec, with its schema."""

    resource: Resource
    path: Path
    schema: Mapping[str, Any]
    root: Mapping[str, Any]

    @property
    def name(self) -> str:
        """As in the names of cases: `appservices/ports[].name`."""
        return f"{self.resource.plural}/{'.'.join(self.path).replace('.[]', '[]')}"

    @property
    def location(self) -> str:
        """As in a message of the API server: `spec.ports[0].name`."""
        return f"spec.{'.'.join(self.path).replace('.[]', '[0]')}"

    @property
    def base(self) -> Object:
        """The smallest spec in which the field can have an effect."""
        beside = [fields for path, fields in BESIDE.items() if self.path[: len(path)] == path]
        return {**BASES[self.resource.kind], **{name: value for fields in beside for name, value in fields.items()}}

    def with_value(self, value: Any) -> Object:
        """The smallest spec in which the field has this value; what is outside its top-level parent is as in `base`."""
        top = self.path[0]
        others = {name: inner for name, inner in self.base.items() if name != top}
        parent = {name: inner for name, inner in build(self.root, self.path, value).items() if name == top}
        if self.path in WITHIN:
            parent = {top: {**WITHIN[self.path], **parent[top]}}
        return {**others, **parent}

    def with_items(self) -> Object:
        """The same with two items in the field's list, which have the two values of each field."""
        return self.with_value(Items(values(self.path, self.schema)))

    def absent(self) -> Object:
        """The same spec without the field, with the required fields beside it."""
        return self.with_value(ABSENT)

    def emptied(self) -> Object:
        """A spec in which the field's top-level parent is empty."""
        top = self.root["properties"][self.path[0]]
        empties: dict[str, object] = {"array": [], "object": {}}
        return {**self.base, self.path[0]: empties.get(top.get("type", ""))}


def all_leaves() -> Iterator[Leaf]:
    """Every field of both kinds."""
    for resource in RESOURCES:
        yield from leaves(resource, spec_schema(resource.group, resource.plural))


def leaves(resource: Resource, root: Mapping[str, Any]) -> Iterator[Leaf]:
    """Every field without fields of its own, and those of WHOLES."""

    def walk(schema: Mapping[str, Any], path: Path) -> Iterator[Leaf]:
        if last_name(path) in WHOLES:
            yield Leaf(resource, path, schema, root)
        elif "properties" in schema:
            for name, inner in schema["properties"].items():
                yield from walk(inner, (*path, name))
        elif schema.get("type") == "array":
            yield from walk(schema["items"], (*path, "[]"))
        elif "additionalProperties" in schema:
            for key in _keys(schema["additionalProperties"]):
                yield from walk(schema["additionalProperties"], (*path, key))
        else:
            yield Leaf(resource, path, schema, root)

    return walk(root, ())


def last_name(path: Path) -> str:
    """The last name of a path: of an item, with that of its list, such as `extraArgs[]`."""
    return "".join(path[-2:] if path[-1:] == ("[]",) else path[-1:])


def values(path: Path, schema: Mapping[str, Any]) -> tuple[Any, Any]:
    """Two valid values of a field; the first is not the default."""
    name = last_name(path)
    known = VALUES | (AMOUNTS if "x-kubernetes-int-or-string" in schema else {})
    if name in known:
        return known[name]
    found = sorted(_candidates(schema), key=lambda value: value == schema.get("default"))
    return found[0], found[1]


def _candidates(schema: Mapping[str, Any]) -> list[Any]:
    if "enum" in schema:
        return schema["enum"]
    if schema.get("type") == "integer":
        start = schema.get("minimum", 0) + 1
        return [start, start + 1, start + 2]
    return [True, False] if schema.get("type") == "boolean" else ["aa", "bb"]


def _keys(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of a map whose values have this schema."""
    return TEXT_KEYS if schema.get("type") == "string" else RESOURCE_KEYS


def build(schema: Mapping[str, Any], path: Path, value: Any, number: int = 0) -> Any:
    """The smallest value of a schema with another value at a path, including all required fields.

    `number`: which of their two values the required fields have.
    """
    if not path:
        return value
    head, rest = path[0], path[1:]
    if head == "[]":
        return _items(schema["items"], rest, value, number)
    found = _required(schema, head, number)
    if value is ABSENT and not rest:
        return found
    inner = schema["properties"][head] if "properties" in schema else schema["additionalProperties"]
    return {**found, head: build(inner, rest, value, number)}


def _items(schema: Mapping[str, Any], path: Path, value: Any, number: int) -> list[Any]:
    if isinstance(value, Items):
        return [build(schema, path, each, at) for at, each in enumerate(value.values)]
    return [] if value is ABSENT and not path else [build(schema, path, value, number)]


def smallest(schema: Mapping[str, Any]) -> Any:
    """The smallest value of a schema."""
    return _required(schema, "", 0) if "properties" in schema else _candidates(schema)[0]


def _required(schema: Mapping[str, Any], but: str, number: int) -> Object:
    """The required fields of a schema that have no default, except one."""
    properties = schema.get("properties", {})
    names = [name for name in schema.get("required", ()) if name != but and "default" not in properties[name]]
    return {name: values((name,), properties[name])[number] for name in names}
