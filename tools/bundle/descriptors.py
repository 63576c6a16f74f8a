"""What a console shows of each field: made from the types in `memcached_api`, as the CRDs are."""

import re
from collections.abc import Iterator
from typing import Any, Final

from crds.crd import object_schema
from crds.schema import Schema
from memcached_api.kinds import Kind

_UI: Final = "urn:alm:descriptor:com.tectonic.ui:"
_KUBERNETES: Final = "urn:alm:descriptor:io.kubernetes"

_TITLES: Final = {"envs": "Environment", "nodes": "Pods", "size": "Pods"}
"""Where the words of the name would not tell people."""

_WIDGETS: Final = {
    "size": [f"{_UI}podCount"],
    "resources": [f"{_UI}resourceRequirements"],
    "imagePullPolicy": [f"{_UI}imagePullPolicy", f"{_UI}advanced"],
    "imagePullSecrets": [f"{_UI}advanced"],
    "imagePullSecrets[0].name": [f"{_KUBERNETES}:Secret", f"{_UI}advanced"],
    "envs[0].valueFrom.secretKeyRef.name": [f"{_KUBERNETES}:Secret"],
    "envs[0].valueFrom.configMapKeyRef.name": [f"{_KUBERNETES}:ConfigMap"],
    "conditions": [f"{_KUBERNETES}.conditions"],
}
"""Where the type of a field says less than its meaning."""


def spec_descriptors(kind: Kind[Any]) -> list[dict[str, Any]]:
    """One descriptor for each field of the spec, nested ones included, in the order of the types."""
    return list(_below(object_schema(kind)["properties"]["spec"], "", ""))


def status_descriptors(kind: Kind[Any]) -> list[dict[str, Any]]:
    """One descriptor for each field of the status; a console shows what is below as part of it."""
    fields = object_schema(kind)["properties"]["status"]["properties"]
    return [_descriptor(name, name, field, _WIDGETS.get(name, _shown(field))) for name, field in fields.items()]


def _below(schema: Schema, prefix: str, group: str) -> Iterator[dict[str, Any]]:
    """`group` is the descriptor that ties a field to the one it is part of."""
    for name, field in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        yield _descriptor(path, name, field, [*_WIDGETS.get(path, _entered(field)), *([group] if group else [])])
        if "items" in field:
            yield from _below(field["items"], f"{path}[0].", group or f"{_UI}arrayFieldGroup:{name}")
        else:
            yield from _below(field, f"{path}.", group or f"{_UI}fieldGroup:{name}")


def _descriptor(path: str, name: str, field: Schema, hints: list[str]) -> dict[str, Any]:
    found = {"path": path, "displayName": title(name), "description": field["description"]}
    return found | ({"x-descriptors": hints} if hints else {})


def _shown(field: Schema) -> list[str]:
    return [f"{_UI}text"] if field["type"] in ("integer", "string") else []


def _entered(field: Schema) -> list[str]:
    """How a field of this type is entered; what has fields of its own, or keys, is entered through these."""
    if "enum" in field:
        return [f"{_UI}select:{choice}" for choice in field["enum"]]
    name = {"integer": "number", "boolean": "booleanSwitch", "string": "text"}.get(field.get("type", "string"))
    return [f"{_UI}{name}"] if name else []


def title(name: str) -> str:
    """A field's name in words: `containerPort` as `Container Port`."""
    return _TITLES.get(name) or " ".join(word.capitalize() for word in re.findall(r"[A-Za-z][a-z0-9]*", name))
