"""The changes of pods that the API server accepts: in place, and by the subresource `resize`.

Source: pkg/registry/core/pod and pkg/apis/core/validation of Kubernetes 1.35. A function that changes the new object,
which is a fresh copy, never changes the old one.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from memcached_operator.kube.resource import Object, nested_map
from simulation.api.errors import Cause, invalid_value

LISTS: Final = ("containers", "initContainers")
RESIZABLE: Final = ("cpu", "memory")
UPDATABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)
"""The fields of a pod that an update may change, as messages name them."""
UNCHECKED: Final = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates")
"""The fields of which the API server accepts some changes, and this one all."""


def qos(spec: Object) -> str:
    """The QoS class of a pod, by the amounts of CPU and memory (pkg/apis/core/helper/qos)."""
    containers = (*(spec["containers"] or ()), *spec.get("initContainers", ()))
    requests = [nested_map(each, "resources", "requests") for each in containers]
    limits = [nested_map(each, "resources", "limits") for each in containers]
    if not any(amounts.get(name) for amounts in (*requests, *limits) for name in RESIZABLE):
        return "BestEffort"
    guaranteed = all(
        limit.get(name) and request.get(name, limit[name]) == limit[name]
        for request, limit in zip(requests, limits, strict=True)
        for name in RESIZABLE
    )
    return "Guaranteed" if guaranteed else "Burstable"


def keep_all_but_resources(new: Object, old: Object) -> None:
    """Keep the fields that a resize cannot change. Containers in another order are left to the validation."""
    spec, before = new["spec"], old["spec"]
    if _names(spec) != _names(before):
        return
    kept: Object = dict(before)
    for name in LISTS:
        if name in before:
            pairs = zip(before[name], spec[name], strict=True)
            kept[name] = [_resized(one, other) for one, other in pairs]
    new.update(spec=kept, status=old["status"])


def _names(spec: Object) -> list[list[str]]:
    """The names of the containers of each list, in their order."""
    return [[each["name"] for each in spec.get(name) or ()] for name in LISTS]


def _resized(old: Object, new: Object) -> Object:
    changed = {name: new[name] for name in ("resources", "resizePolicy") if name in new}
    return {**{name: value for name, value in old.items() if name not in ("resources", "resizePolicy")}, **changed}


def violations_of_update(new: Object, old: Object) -> Iterator[Cause]:
    """The fields that an update may not change. The API server's message ends with both specs as Go values."""
    if _names(new["spec"]) != _names(old["spec"]) or _fixed(new["spec"]) != _fixed(old["spec"]):
        yield _forbidden("spec", f"pod updates may not change fields other than {UPDATABLE}\n")


def _fixed(spec: Object) -> Object:
    """The part of a pod's spec that an update may not change."""
    fixed = {name: value for name, value in spec.items() if name not in (*UNCHECKED, *LISTS)}
    lists = {name: [_without(each, "image") for each in spec.get(name) or ()] for name in LISTS}
    return {**fixed, **lists}


def violations_of_resize(new: Object, old: Object) -> Iterator[Cause]:
    """What a resize may not change."""
    if old["status"].get("qosClass", qos(old["spec"])) != qos(new["spec"]):
        yield invalid_value("spec", old["status"]["qosClass"], "Pod QOS Class may not change as a result of resizing")
    disordered = [*_disordered(new["spec"], old["spec"])]
    yield from disordered
    if disordered:
        return
    pairs = [
        (f"spec.{name}[{place}].resources", *pair)
        for name in reversed(LISTS)
        for place, pair in enumerate(zip(new["spec"].get(name) or (), old["spec"].get(name) or (), strict=True))
    ]
    for path, *pair in pairs:
        for part in ("requests", "limits"):
            after, before = (nested_map(each, "resources", part) for each in pair)
            if before.keys() - after.keys():
                yield _forbidden(f"{path}.{part}", f"resource {part} cannot be removed")
    for _, *pair in pairs:
        after, before = (_without_amounts(each) for each in pair)
        if after != before:
            yield _forbidden("spec", "only cpu and memory resources are mutable")


def _disordered(new: Object, old: Object) -> Iterator[Cause]:
    for name, after, before in zip(LISTS, _names(new), _names(old), strict=True):
        if len(after) != len(before):
            yield _forbidden(f"spec.{name}", f"{name} may not be added or removed on resize")
            continue
        for place, (one, other) in enumerate(zip(after, before, strict=True)):
            if one != other:
                text = f"{name} may not be renamed or reordered on resize"
                yield _forbidden(f"spec.{name}[{place}].name", text)


def _without_amounts(container: Object) -> Object:
    """A container without the amounts that a resize can change."""
    found: Object = msgspec.json.decode(msgspec.json.encode(container))
    for amounts in found.get("resources", {}).values():
        for name in RESIZABLE:
            amounts.pop(name, None)
    found["resources"] = {part: amounts for part, amounts in found.get("resources", {}).items() if amounts}
    return found


def _without(container: Object, field: str) -> dict[str, Any]:
    return {name: value for name, value in container.items() if name != field}


def _forbidden(path: str, problem: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {problem}", path)
