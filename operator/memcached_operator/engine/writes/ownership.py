"""Decides which action one child needs, from its owner and its state. Pure functions.

An object with the name of a child is one of these:

* A child: the custom resource is its controller.
* An orphan: it has no controller, but the operator's labels and field manager. It is adopted, and then applied.
* A copy, as from a backup without managedFields: it has no owner at all, the operator's labels, and the digest of an
  intent. It is adopted only if it has every desired value, so that the adoption changes nothing but its metadata.
  Everyone who can create such an object can also create an orphan, because each client chooses its field manager.
* The child of a deleted custom resource of this name: the garbage collector deletes it.
* The object of another owner. It is never modified.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, cast

from memcached_api.annotations import INTENT_ANNOTATION
from memcached_operator.engine.writes.intent import replicas_of, with_recorded_intent, with_replicas
from memcached_operator.findings.interventions import field_names
from memcached_operator.findings.obstacles import blocked_by
from memcached_operator.kube import labels, texts
from memcached_operator.kube.client import FIELD_MANAGER
from memcached_operator.kube.compare import covers
from memcached_operator.kube.field_managers import differences, is_our_entry
from memcached_operator.kube.resource import Object, controller_of, nested_list, nested_map


class Action(Enum):
    """The action for one child."""

    CREATE = "create"
    APPLY = "apply"
    SCALE = "scale"
    """Change only the number of pods."""
    SKIP = "skip"
    """Write nothing: the child is as desired."""
    WAIT = "wait"
    """Write nothing until an object with the name of the child is deleted."""
    CONFLICT = "conflict"
    """Write nothing: an object that this operator must not change has the name of the child."""


class Owner(NamedTuple):
    """The controller of an object that another owner has created."""

    group: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{texts.name(self.kind)} {texts.name(self.name)}"


@dataclass(frozen=True)
class Decision:
    """The action for one child, with its cause."""

    action: Action
    message: str = ""
    """The cause of WAIT and CONFLICT, as a message for the status; empty for other actions."""
    is_copy: bool = False
    """The object in conflict is a copy of a child."""
    owner: Owner | None = None
    """The controller of the object in conflict; None without one."""


def controller_reference(cr: Object) -> Object:
    """The controller reference to `cr`, for garbage collection."""
    return {
        "apiVersion": cr["apiVersion"],
        "kind": cr["kind"],
        "name": cr["metadata"]["name"],
        "uid": cr["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_controlled_by(live: Object | None, cr: Object) -> bool:
    """True if `live` exists and `cr` controls it. An earlier object with the same name has another uid."""
    controller = None if live is None else controller_of(live)
    return controller is not None and controller["uid"] == cr["metadata"]["uid"]


def decide(cr: Object, desired: Object, live: Object | None) -> Decision:
    """The next step for a child, given the live object."""
    if live is None:
        return Decision(Action.CREATE)
    name = f"{live['kind']} {live['metadata']['name']}"
    controller = controller_of(live)
    own = labels.own_labels(desired["metadata"]["labels"])
    if controller is None and not is_orphan(live, own):
        return _of_unmanaged(name, desired, live, own)
    if controller is not None and not is_controlled_by(live, cr):
        owner = _owner(controller)
        if owner == _owner(controller_reference(cr)):
            return _wait(f"{name} of an earlier {cr['kind']} with the same name is still being deleted", live)
        return Decision(Action.CONFLICT, f"{name} belongs to {owner}", owner=owner)
    if live["metadata"].get("deletionTimestamp"):
        return _wait(f"{name} is being deleted", live)
    if is_current(desired, live):
        return Decision(Action.SKIP)
    return Decision(Action.SCALE if is_only_scaled(desired, live) else Action.APPLY)


def _wait(message: str, live: Object) -> Decision:
    """The decision to wait for a deletion, with the finalizers that block it."""
    cause = blocked_by(live)
    return Decision(Action.WAIT, f"{message}: {cause}" if cause else message)


def _of_unmanaged(name: str, desired: Object, live: Object, own_labels: Mapping[str, str]) -> Decision:
    """The decision about an object without a controller that other clients have created."""
    if not is_copy(live, own_labels):
        return Decision(Action.CONFLICT, f"{name} exists and is not managed by this operator")
    if live["metadata"].get("deletionTimestamp"):
        return _wait(f"{name} is being deleted", live)
    if different := field_names([*differences(live, _content(desired))]):
        return Decision(Action.CONFLICT, f"{name} has another value of {different}", is_copy=True)
    return Decision(Action.APPLY)


def _content(desired: Object) -> Object:
    """The desired child without what depends on the uid of its owner."""
    meta: Object = {name: value for name, value in desired["metadata"].items() if name != "ownerReferences"}
    annotations = {name: text for name, text in meta["annotations"].items() if name != INTENT_ANNOTATION}
    return {**desired, "metadata": {**meta, "annotations": annotations}}


def is_current(desired: Object, live: Object) -> bool:
    """True if `live` has every desired value, and no field of an earlier intent remains."""
    expected = with_recorded_intent(desired, live)
    return expected is not None and covers(live, expected)


def is_only_scaled(desired: Object, live: Object) -> bool:
    """True if `live` is current except for the number of pods."""
    replicas = replicas_of(live)
    if replicas is None or replicas_of(desired) in (None, replicas):
        return False
    # Not with the digest of release 0.1.0, which a merge patch would not update.
    return covers(live, with_replicas(desired, replicas))


def scale_patch(desired: Object, live: Object) -> list[Object]:
    """The JSON patch that changes only the number of pods.

    Only this field is changed by a patch: it adds the field to an *Update* entry of the operator's field manager, from
    which an apply does not remove it.
    """
    return [*_same_object(live), {"op": "add", "path": "/spec/replicas", "value": replicas_of(desired)}]


def version_test(seen: Object) -> Object:
    """The operation with which a JSON patch fails for another version of an object."""
    return {"op": "test", "path": "/metadata/resourceVersion", "value": seen["metadata"]["resourceVersion"]}


def _same_object(live: Object) -> list[Object]:
    """The operations with which a JSON patch fails for an object of another uid, or of other owners.

    It has no resourceVersion, because every change of a workload's status changes that. An apply needs no such test:
    the API server rejects a second controller.
    """
    meta = live["metadata"]
    found = {name: meta[name] for name in ("uid", "ownerReferences") if meta.get(name)}
    return [{"op": "test", "path": f"/metadata/{name}", "value": value} for name, value in found.items()]


def annotation_patch(live: Object, name: str, value: str) -> list[Object]:
    """The JSON patch that annotates a child, unless another object has its name by then, or it has other owners.

    It fails, too, for a child without annotations: the operator has to restore its own first.
    """
    member = name.replace("~", "~0").replace("/", "~1")
    return [*_same_object(live), {"op": "add", "path": f"/metadata/annotations/{member}", "value": value}]


def preparation_patch(desired: Object, live: Object) -> list[Object]:
    """The JSON patch with what an apply cannot do; empty if there is nothing of that.

    It migrates field ownership from *Update* to *Apply*, and removes maps of other clients.
    """
    removals = _removals(nested_map(desired, "spec"), nested_map(live, "spec"), "/spec")
    operations = _migration(live) + (_adoption(desired, live) if removals else []) + removals
    return [*_same_object(live), *operations] if operations else []


def _migration(live: Object) -> list[Object]:
    """After a create by POST, the fields belong to the *Update* entry of the operator's field manager, and an apply
    does not remove a field from that entry."""
    managed_fields = nested_list(live, "metadata", "managedFields")
    ours = {entry["operation"]: index for index, entry in enumerate(managed_fields) if is_our_entry(entry)}
    if "Update" not in ours or "Apply" in ours:
        return []
    path = f"/metadata/managedFields/{ours['Update']}"
    return [
        {"op": "test", "path": f"{path}/manager", "value": FIELD_MANAGER},
        {"op": "test", "path": f"{path}/operation", "value": "Update"},
        {"op": "replace", "path": f"{path}/operation", "value": "Apply"},
    ]


def _adoption(desired: Object, live: Object) -> list[Object]:
    """Gives an orphan its controller: the operator may change no other object."""
    if controller_of(live):
        return []
    references = [
        *nested_list(live, "metadata", "ownerReferences"),
        *nested_list(desired, "metadata", "ownerReferences"),
    ]
    return [{"op": "add", "path": "/metadata/ownerReferences", "value": references}]


def _removals(desired: Mapping[str, object], live: Mapping[str, object], path: str) -> list[Object]:
    """Replaces each map with a null for which `live` has a map: applied, the null would leave that as it is.

    The whole map, because the API server may deny, or set again, the one without the other: `rollingUpdate` of a
    StatefulSet depends on `type`.
    """
    patch: list[Object] = []
    for name, value in desired.items():
        other = live.get(name)
        if not isinstance(value, dict) or not isinstance(other, dict):
            continue
        desired, actual = cast("Object", value), cast("Object", other)
        if any(item is None and isinstance(actual.get(field), dict) for field, item in desired.items()):
            kept = {field: item for field, item in {**actual, **desired}.items() if item is not None}
            patch.append({"op": "replace", "path": f"{path}/{name}", "value": kept})
        else:
            patch += _removals(desired, actual, f"{path}/{name}")
    return patch


def _owner(reference: Mapping[str, Any]) -> Owner:
    """The owner to which an owner reference refers. Not the version, because a kind can have several."""
    return Owner(reference["apiVersion"].partition("/")[0], reference["kind"], reference["name"])


def is_orphan(live: Object, own_labels: Mapping[str, str]) -> bool:
    """True for a manually orphaned child: no controller, but the operator's labels and field manager."""
    ours = any(map(is_our_entry, nested_list(live, "metadata", "managedFields")))
    return ours and controller_of(live) is None and labels.has(live, own_labels)


def is_copy(live: Object, own_labels: Mapping[str, str]) -> bool:
    """True for a copy of a child, as from a backup: no owner, but the operator's labels and the digest of an intent."""
    has_intent = INTENT_ANNOTATION in nested_map(live, "metadata", "annotations")
    return has_intent and not live["metadata"].get("ownerReferences") and labels.has(live, own_labels)


def may_be_adopted(live: Object, own_labels: Mapping[str, str]) -> bool:
    """Whether an object without a controller is an orphan, or a copy that is adopted if it has every desired value."""
    return is_orphan(live, own_labels) or is_copy(live, own_labels)
