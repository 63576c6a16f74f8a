"""Descriptors, from which consoles render each field, generated from the types in `memcached_api` like the CRDs."""

import re
from collections.abc import Callable, Container, Iterator
from typing import Any, Final

from crds.crd import object_schema
from crds.schema import Schema
from crds.whole import whole_fields
from memcached_api.kind import Kind

_UI: Final = "urn:alm:descriptor:com.tectonic.ui:"
_KUBERNETES: Final = "urn:alm:descriptor:io.kubernetes"

_TITLES: Final = {
    "apiVersion": "API Version", "appProtocol": "Application Protocol", "cidr": "CIDR",
    "configMapKeyRef": "From a ConfigMap", "divisor": "Unit", "envs": "Environment",
    "fieldRef": "From a Field of the Pod", "from": "Clients", "ipBlock": "IP Block", "metadata": "Pod Metadata",
    "nodes": "Pod Names", "podAntiAffinity": "Pod Anti-Affinity",
    "resourceFieldRef": "From a Resource of the Container", "secretKeyRef": "From a Secret", "size": "Pods",
    "spec": "Pod Spec", "valueFrom": "Value From",
}  # fmt: skip
"""Display names that differ from the field's name."""

_SOURCE: Final = "envs[0].valueFrom"
_TEXTS: Final = {
    "resources.limits": "The maximum amount of each resource that a container may use, such as `memory: 256Mi`.",
    "agent.resources.limits": "The maximum amount of each resource that the agent may use, such as `memory: 48Mi`.",
    "agent.resources.requests": "The amount of each resource that is reserved for the agent, such as `memory: 24Mi`.",
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
    "podTemplate.spec.affinity.nodeAffinity": "Rules about the labels of the node.",
    "podTemplate.spec.affinity.podAffinity": "Rules about pods that must or should run on the same node or in the same "
    "zone.",
    "podTemplate.spec.affinity.podAntiAffinity": "Rules about pods that must not or should not run on the same node or "
    "in the same zone.",
    "conditions[0].type": "Available, Progressing, Degraded, Ready or Stalled.",
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
    "cache.extraArgs": [f"{_UI}text", f"{_UI}advanced"],
    "podTemplate": [f"{_UI}fieldGroup:podTemplate", f"{_UI}advanced"],
    "podTemplate.spec.affinity.nodeAffinity": [f"{_UI}nodeAffinity"],
    "podTemplate.spec.affinity.podAffinity": [f"{_UI}podAffinity"],
    "podTemplate.spec.affinity.podAntiAffinity": [f"{_UI}podAntiAffinity"],
    "podTemplate.spec.serviceAccountName": [f"{_KUBERNETES}:ServiceAccount"],
    # A text field would store the string "1" instead of the number. Percentages are entered as YAML.
    "podDisruptionBudget.maxUnavailable": [f"{_UI}number"],
    "rollout.maxUnavailable": [f"{_UI}number"],
    "rollout.maxSurge": [f"{_UI}number"],
    "service": [f"{_UI}fieldGroup:service", f"{_UI}advanced"],
    "envs[0].valueFrom.secretKeyRef.name": [f"{_KUBERNETES}:Secret"],
    "envs[0].valueFrom.configMapKeyRef.name": [f"{_KUBERNETES}:ConfigMap"],
    "nodes": [f"{_UI}text"],
    "servers": [f"{_UI}text"],
    "conditions": [f"{_KUBERNETES}.conditions"],
}
"""Widgets that do not follow from the type of the field."""


def spec_descriptors(kind: Kind[Any]) -> list[dict[str, Any]]:
    """One descriptor for each field of the spec, in the order of the types.

    Nested fields are included, but not those of types that users know from Kubernetes as a whole: a console renders
    them from the CRD.
    """
    leaves = frozenset(whole_fields(kind.spec, "[0]"))
    return list(_below(object_schema(kind)["properties"]["spec"], "", "", _entered, leaves))


def status_descriptors(kind: Kind[Any]) -> list[dict[str, Any]]:
    """One descriptor for each field of the status, nested ones included, in the order of the types."""
    return list(_below(object_schema(kind)["properties"]["status"], "", "", _shown))


def _below(
    schema: Schema,
    prefix: str,
    group: str,
    widget: Callable[[Schema], list[str]],
    leaves: Container[str] = (),
) -> Iterator[dict[str, Any]]:
    """The descriptors below a field.

    `group` is the x-descriptor of the parent field's group; `widget` returns those of a type. Fields below `leaves`
    have none.
    """
    for name, field in schema.get("properties", {}).items():
        path, inner, dot = f"{prefix}{name}", field.get("items", field), "[0]." if "items" in field else "."
        below = group or f"{_UI}{'arrayFieldGroup' if 'items' in field else 'fieldGroup'}:{name}"
        hints = list(_WIDGETS.get(path, widget(field)))
        # A field with subfields is the head of its group, unless it has a widget.
        hints += [group] if group else [below] if "properties" in inner and not hints else []
        yield _descriptor(path, name, field, hints)
        if path not in leaves:
            yield from _below(inner, f"{path}{dot}", below, widget, leaves)


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
