"""Objects for a report, without values that can be secret and without fields that only the API server needs."""

import re
from collections.abc import Callable
from typing import Any, Final, cast

from kubectl_memcached.model.objects import Object, mapping, objects, text
from kubectl_memcached.model.pods import AGENT, MEMCACHED
from kubectl_memcached.model.redaction import REDACTED

OWN: Final = (MEMCACHED, AGENT, "proxy")
"""The names of the containers whose commands and logs are known."""

_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation with a copy of the object, values included."""
_ANNOTATIONS: Final = re.compile(r"memcached-operator\.example\.com/|(?:[-a-z0-9]+\.)*(?:kubernetes|k8s)\.io/")
"""The beginnings of annotations whose values are no secrets. Others can have copies of objects, or be credentials."""
_COMMANDS: Final = ("command", "args", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle")
"""Fields of a container of another client that can contain credentials."""
_STATES: Final = ("state", "lastState")
_HASH: Final = "[bcdfghjklmnpqrstvwxz2456789]{1,10}"
"""The characters of the generated parts of names (k8s.io/apimachinery pkg/util/rand): no words."""
_CHILD: Final = rf"(?:-(?:connection|\d{{1,9}}|{_HASH}(?:-{_HASH})?))?"
"""The end of the name of a child or a pod, after the name of its Memcached."""


def cleaned(obj: Object) -> dict[str, Any]:
    """The object without managed fields, copies of itself, and values that can be secret: of environment variables,
    of ConfigMaps and annotations of others, and commands, probes and last messages of containers of others.

    Raises ValueError for a Secret, which must never be part of a report.
    """
    if text(obj, "kind") == "Secret":
        raise ValueError("a report contains no Secrets")
    found = cast("dict[str, Any]", _clean(dict(obj)))
    owners = [text(owner, "kind") for owner in objects(obj, "metadata", "ownerReferences")]
    if text(obj, "kind") == "ConfigMap" and owners != ["Memcached"]:
        found |= {name: dict.fromkeys(mapping(obj, name), REDACTED) for name in ("data", "binaryData") if name in found}
    return found


def without_managed_fields(obj: Object) -> dict[str, Any]:
    """A CustomResourceDefinition, whose schema has fields with names of those that are removed from other objects."""
    meta = mapping(obj, "metadata")
    return {**obj, "metadata": {name: meta[name] for name in meta if name not in ("managedFields", "annotations")}}


def _clean(value: Any) -> Any:
    if isinstance(value, list):
        return [_clean(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    kept = {name: _clean(content) for name, content in fields.items() if name not in ("managedFields", _APPLIED)}
    for name, content in kept.items():
        if name == "annotations" and isinstance(content, dict):
            kept[name] = _annotations(cast("dict[str, Any]", content))
        elif name in _ITEMS and isinstance(content, list):
            items = cast("list[Any]", content)
            kept[name] = [_ITEMS[name](each) if isinstance(each, dict) else each for each in items]
    return kept


def _annotations(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value if _ANNOTATIONS.match(name) else REDACTED for name, value in values.items()}


def _variable(fields: Any) -> Any:
    return {**fields, "value": REDACTED} if "value" in fields else fields


def _container(fields: Any) -> Any:
    if fields.get("name") in OWN:
        return fields
    return fields | {name: REDACTED for name in _COMMANDS if name in fields}


def _status(fields: Any) -> Any:
    """The status of a container. Its last message can be the end of its log."""
    if fields.get("name") in OWN:
        return fields
    states = {name: mapping(fields, name) for name in _STATES if name in fields}
    for name, state in states.items():
        if "message" in mapping(state, "terminated"):
            states[name] = {**state, "terminated": {**mapping(state, "terminated"), "message": REDACTED}}
    return fields | states


_ITEMS: Final[dict[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("env", "httpHeaders"), _variable),
    **dict.fromkeys(("containers", "initContainers", "ephemeralContainers"), _container),
    **dict.fromkeys(("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"), _status),
}
"""What is kept of each item of the lists with these names."""


def concerns(event: Object, name: str) -> bool:
    """Whether an Event is about a Memcached, one of its children, or one of their pods."""
    return re.fullmatch(re.escape(name) + _CHILD, text(event, "involvedObject", "name")) is not None


def node(obj: Object) -> dict[str, Any]:
    """The part of a node that a report contains: its resources, conditions and taints."""
    return {
        "name": text(obj, "metadata", "name"),
        "allocatable": dict(mapping(obj, "status", "allocatable")),
        "conditions": [dict(condition) for condition in objects(obj, "status", "conditions")],
        "taints": [dict(taint) for taint in objects(obj, "spec", "taints")],
        "kubeletVersion": text(obj, "status", "nodeInfo", "kubeletVersion"),
        "unschedulable": mapping(obj, "spec").get("unschedulable") is True,
    }
