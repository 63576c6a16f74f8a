"""Objects as the API server decodes them: copies without the fields and values that it does not store.

Go's types have no null and no empty values of fields with `omitempty` (k8s.io/api, types.go). Custom resources lose
unknown fields and get the defaults of their schema (apiextensions-apiserver, package schema).
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from memcached_operator.kube.resource import Object
from simulation.api.schema import RAW, Type, empty

NOTHING: Final[Mapping[str, Any]] = {}
OMITTED: Final = frozenset(
    {
        *("availableReplicas", "count", "currentReplicas", "failureThreshold", "fullyLabeledReplicas", "hostIPC"),
        *("hostNetwork", "hostPID", "hostPort", "initialDelaySeconds", "minReadySeconds", "nodePort"),
        *("observedGeneration", "paused", "periodSeconds", "publishNotReadyAddresses", "readOnly", "readyReplicas"),
        *("signal", "stdin", "stdinOnce", "successThreshold", "tty", "unavailableReplicas", "unschedulable"),
        *("updatedReplicas", "healthCheckNodePort"),
    }
)
"""Fields of numbers and booleans that are not stored if they are 0 or false. Those that `kept` names stay."""


def normal(kind: Type, obj: Object, live: Mapping[str, Any] = NOTHING) -> Object:
    """A copy of an object of a Go type as it is stored. It shares unchanged parts with `live`, which is stored."""
    if not kind.named:  # a map with any keys
        return {name: _normal_value(kind.rest, "" if value is None else value, None) for name, value in obj.items()}
    found: Object = {}
    for name, value in obj.items():
        known = live.get(name)
        if value is known:
            if value is not None:
                found[name] = value
            continue
        child = kind.child(name)
        if value is None or (not value and _is_omitted(kind, child, name, value)):
            continue
        found[name] = _normal_value(child, value, known) if isinstance(value, dict | list) else value
    for name, value in kind.kept.items():
        if name not in found:
            found[name] = empty(kind.child(name)) if value == {} else value
    return found


def _normal_value(kind: Type, value: Any, live: Any) -> Any:
    if kind is RAW:
        return copied(value)
    if isinstance(value, dict):
        return normal(kind, cast("Object", value), cast("Object", live) if isinstance(live, dict) else NOTHING)
    if isinstance(value, list):
        child = kind.rest
        return [_normal_value(child, each, None) for each in cast("list[Any]", value)]
    return value


def _is_omitted(kind: Type, child: Type, name: str, value: Any) -> bool:
    """Whether an empty value of a field is not stored."""
    if name in kind.kept:
        return False
    if isinstance(value, dict):
        return not child.named  # an empty map; an empty struct stays
    return isinstance(value, str | list) or name in OMITTED


def pruned(kind: Type, obj: Object, live: Mapping[str, Any] = NOTHING) -> Object:
    """A copy of a custom resource, or of a part of it, without unknown fields and with defaults.

    It shares unchanged parts with `live`, which is stored.
    """
    found: Object = {}
    for name, value in obj.items():
        known = live.get(name)
        is_known = not kind.custom or kind.is_field(name) or kind.item is not None
        if value is known and value is not None:
            found[name] = value
        elif is_known and (value is not None or kind.initial.get(name) is None):  # a default replaces a null
            found[name] = _pruned_value(kind.child(name), value, known)
    for name, value in kind.initial.items():
        if name not in found:
            found[name] = _pruned_value(kind.child(name), value, None)
    return found


def _pruned_value(kind: Type, value: Any, live: Any) -> Any:
    if isinstance(value, dict):
        known = cast("Object", live) if isinstance(live, dict) else NOTHING
        return pruned(kind, cast("Object", value), known) if kind.custom else copied(value)
    if isinstance(value, list):
        child = kind.rest
        return [_pruned_value(child, each, None) for each in cast("list[Any]", value)]
    return value


def copied(value: Any) -> Any:
    """A deep copy of JSON."""
    if isinstance(value, dict):
        return {name: copied(each) for name, each in cast("Object", value).items()}
    if isinstance(value, list):
        return [copied(each) for each in cast("list[Any]", value)]
    return value
