"""Descriptors, from which consoles render each field, generated from the types in `memcached_api` like the CRDs."""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from crds.crd import object_schema
from crds.schema import Schema
from memcached_api.kinds import Kind

_UI: Final = "urn:alm:descriptor:com.tectonic.ui:"
_KUBERNETES: Final = "urn:alm:descriptor:io.kubernetes"

_TITLES: Final = {
    "apiVersion": "API Version", "appProtocol": "Application Protocol", "configMapKeyRef": "From a ConfigMap",
    "divisor": "Unit", "envs": "Environment", "fieldRef": "From a Field of the Pod", "nodes": "Pod Names",
    "resourceFieldRef": "From a Resource of the Container", "secretKeyRef": "From a Secret", "size": "Pods",
    "valueFrom": "Value From",
}  # fmt: skip
"""Display names that differ from the field's name."""

_SOURCE: Final = "envs[0].valueFrom"
_TEXTS: Final = {
    "resources.limits": "The maximum amount of each resource that a container may use, such as `memory: 256Mi`.",
    "resources.requests": "The amount of each resource that is reserved for a container, such as `cpu: 100m`. The pod "
    "runs only on a node with that much available. At most the limit.",
    "envs[0].value": "The value. `$(NAME)` refers to an earlier variable, `$$` is a dollar sign.",
    _SOURCE: "The source of the value, instead of `value`: one of the four.",
    f"{_SOURCE}.configMapKeyRef": "The value of a key in a ConfigMap of this namespace.",
    f"{_SOURCE}.secretKeyRef": "The value of a key in a Secret of this namespace.",
    f"{_SOURCE}.fieldRef": "A field of the pod, such as its name or address.",
    f"{_SOURCE}.fieldRef.apiVersion": "API version of the path. Defaults to `v1`.",
    f"{_SOURCE}.fieldRef.fieldPath": "Path of the field, such as `metadata.name`, `spec.nodeName` or `status.podIP`.",
    f"{_SOURCE}.resourceFieldRef": "A request or a limit of the container.",
    f"{_SOURCE}.resourceFieldRef.resource": "The resource, such as `limits.memory` or `requests.cpu`.",
    f"{_SOURCE}.resourceFieldRef.divisor": "Unit of the value, such as `1Mi`. Defaults to `1`.",
    "conditions[0].type": "Available, Progressing or Degraded.",
    "conditions[0].status": "`True` or `False`.",
    "conditions[0].reason": "The reason in one word. The API reference describes each reason and its remedy.",
    "conditions[0].message": "The reason in a sentence, with a remedy if there is a problem.",
    "conditions[0].lastTransitionTime": "When the status last changed.",
    "conditions[0].observedGeneration": "The `metadata.generation` of the spec to which the condition applies.",
}
"""Short texts that replace those of Kubernetes, which are too long for a form."""

_WIDGETS: Final = {
    "size": [f"{_UI}podCount"],
    "resources": [f"{_UI}resourceRequirements"],
    "imagePullPolicy": [f"{_UI}imagePullPolicy", f"{_UI}advanced"],
    "imagePullSecrets": [f"{_UI}arrayFieldGroup:imagePullSecrets", f"{_UI}advanced"],
    "imagePullSecrets[0].name": [f"{_KUBERNETES}:Secret", f"{_UI}advanced"],
    "envs[0].valueFrom.secretKeyRef.name": [f"{_KUBERNETES}:Secret"],
    "envs[0].valueFrom.configMapKeyRef.name": [f"{_KUBERNETES}:ConfigMap"],
    "nodes": [f"{_UI}text"],
    "conditions": [f"{_KUBERNETES}.conditions"],
}
"""Widgets that do not follow from the type of the field."""


def spec_descriptors(kind: Kind[Any]) -> list[dict[str, Any]]:
    """One descriptor for each field of the spec, nested ones included, in the order of the types."""
    return list(_below(object_schema(kind)["properties"]["spec"], "", "", _entered))


def status_descriptors(kind: Kind[Any]) -> list[dict[str, Any]]:
    """One descriptor for each field of the status, nested ones included, in the order of the types."""
    return list(_below(object_schema(kind)["properties"]["status"], "", "", _shown))


def _below(schema: Schema, prefix: str, group: str, widget: Callable[[Schema], list[str]]) -> Iterator[dict[str, Any]]:
    """`group` is the x-descriptor of the parent field's group; `widget` returns those of a type."""
    for name, field in schema.get("properties", {}).items():
        path, inner, dot = f"{prefix}{name}", field.get("items", field), "[0]." if "items" in field else "."
        below = group or f"{_UI}{'arrayFieldGroup' if 'items' in field else 'fieldGroup'}:{name}"
        hints = list(_WIDGETS.get(path, widget(field)))
        # A field with subfields is the head of its group, unless it has a widget.
        hints += [group] if group else [below] if "properties" in inner and not hints else []
        yield _descriptor(path, name, field, hints)
        yield from _below(inner, f"{path}{dot}", below, widget)


def _descriptor(path: str, name: str, field: Schema, hints: list[str]) -> dict[str, Any]:
    text = _TEXTS.get(path, field["description"])
    return {"path": path, "displayName": title(name), "description": text, "x-descriptors": hints}


def _shown(field: Schema) -> list[str]:
    return [f"{_UI}text"] if field["type"] in ("integer", "string") else []


def _entered(field: Schema) -> list[str]:
    """The widget for a field of this type; objects and maps have none."""
    if "enum" in field:
        return [f"{_UI}select:{choice}" for choice in field["enum"]]
    name = {"integer": "number", "boolean": "booleanSwitch", "string": "text"}.get(field.get("type", "string"))
    return [f"{_UI}{name}"] if name else []


def title(name: str) -> str:
    """A field's name in words: `containerPort` as `Container Port`."""
    return _TITLES.get(name) or " ".join(word.capitalize() for word in re.findall(r"[A-Za-z][a-z0-9]*", name))
