"""What a console shows of each field: made from the types in `memcached_api`, as the CRDs are."""

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
"""Where the words of the name would not tell people."""

_SOURCE: Final = "envs[0].valueFrom"
_TEXTS: Final = {
    "resources.limits": "The most that a container may use of each resource, such as `memory: 256Mi`.",
    "resources.requests": "What a container is given of each resource in any case, such as `cpu: 100m`: a pod runs on "
    "a node only that has as much to spare. At most the limit.",
    "envs[0].value": "The value itself. `$(NAME)` stands for a variable before this one, `$$` for a dollar sign.",
    _SOURCE: "Where the value is taken from, in place of one that is written here: one of the four.",
    f"{_SOURCE}.configMapKeyRef": "The value is that of a key in a ConfigMap of this namespace.",
    f"{_SOURCE}.secretKeyRef": "The value is that of a key in a Secret of this namespace.",
    f"{_SOURCE}.fieldRef": "The value is a field of the pod itself, such as its name or address.",
    f"{_SOURCE}.fieldRef.apiVersion": "Version of the pod's schema that the path is written in: `v1` when absent.",
    f"{_SOURCE}.fieldRef.fieldPath": "Path of the field, such as `metadata.name`, `spec.nodeName` or `status.podIP`.",
    f"{_SOURCE}.resourceFieldRef": "The value is a request or a limit of the container.",
    f"{_SOURCE}.resourceFieldRef.resource": "Which one, such as `limits.memory` or `requests.cpu`.",
    f"{_SOURCE}.resourceFieldRef.divisor": "Unit the value is given in, such as `1Mi`: `1` when absent.",
    "conditions[0].type": "Available, Progressing or Degraded.",
    "conditions[0].status": "`True` or `False`.",
    "conditions[0].reason": "Why, in one word: the reference of the API tells what each means, and what to do.",
    "conditions[0].message": "Why, in a sentence, with what to do where something is wrong.",
    "conditions[0].lastTransitionTime": "When the status was last another one.",
    "conditions[0].observedGeneration": "The `metadata.generation` of the spec that the condition answers to.",
}
"""In place of Kubernetes' own texts, which the CRD has and a form has no room for."""

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
"""Where the type of a field says less than its meaning."""


def spec_descriptors(kind: Kind[Any]) -> list[dict[str, Any]]:
    """One descriptor for each field of the spec, nested ones included, in the order of the types."""
    return list(_below(object_schema(kind)["properties"]["spec"], "", "", _entered))


def status_descriptors(kind: Kind[Any]) -> list[dict[str, Any]]:
    """One descriptor for each field of the status, nested ones included, in the order of the types."""
    return list(_below(object_schema(kind)["properties"]["status"], "", "", _shown))


def _below(schema: Schema, prefix: str, group: str, widget: Callable[[Schema], list[str]]) -> Iterator[dict[str, Any]]:
    """`group` is the descriptor that ties a field to the one it is part of; `widget` tells the one of its type."""
    for name, field in schema.get("properties", {}).items():
        path, inner, dot = f"{prefix}{name}", field.get("items", field), "[0]." if "items" in field else "."
        below = group or f"{_UI}{'arrayFieldGroup' if 'items' in field else 'fieldGroup'}:{name}"
        hints = list(_WIDGETS.get(path, widget(field)))
        # What has fields of its own is the head of its group, unless it has a widget.
        hints += [group] if group else [below] if "properties" in inner and not hints else []
        yield _descriptor(path, name, field, hints)
        yield from _below(inner, f"{path}{dot}", below, widget)


def _descriptor(path: str, name: str, field: Schema, hints: list[str]) -> dict[str, Any]:
    text = _TEXTS.get(path, field["description"])
    return {"path": path, "displayName": title(name), "description": text, "x-descriptors": hints}


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
