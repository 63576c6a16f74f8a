"""Whose is it, and what is to be done about it: pure decisions about one child."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from memcached_operator.kube import labels
from memcached_operator.kube.client import FIELD_MANAGER
from memcached_operator.kube.resource import Object, controller_of, entries, mapping
from memcached_operator.reconcile.compare import INTENT, covers


class Action(Enum):
    """What one child needs."""

    CREATE = "create"
    APPLY = "apply"
    SKIP = "skip"
    WAIT = "wait"
    CONFLICT = "conflict"


@dataclass(frozen=True)
class Step:
    """An action, and why, where somebody should read it."""

    action: Action
    message: str = ""


def owner_reference(cr: Object) -> Object:
    """The controller reference that makes a child belong to `cr` and go with it."""
    return {
        "apiVersion": cr["apiVersion"],
        "kind": cr["kind"],
        "name": cr["metadata"]["name"],
        "uid": cr["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_ours(cr: Object, live: Object) -> bool:
    """True where `cr`, and not an earlier object of its name, controls `live`."""
    controller = controller_of(live)
    return controller is not None and controller["uid"] == cr["metadata"]["uid"]


def decide(cr: Object, desired: Object, live: Object | None) -> Step:
    """The one next step for a child, given what is there."""
    if live is None:
        return Step(Action.CREATE)
    what = f"{live['kind']} {live['metadata']['name']}"
    controller = controller_of(live)
    if controller is None and not _was_ours(desired, live):
        return Step(Action.CONFLICT, f"{what} exists and belongs to nobody this operator knows")
    if controller is not None and not is_ours(cr, live):
        if _who(controller) == _who(owner_reference(cr)):
            return Step(Action.WAIT, f"{what} of the earlier {cr['kind']} of this name is still being deleted")
        return Step(Action.CONFLICT, f"{what} belongs to {controller['kind']} {controller['name']}")
    if live["metadata"].get("deletionTimestamp"):
        return Step(Action.WAIT, f"{what} is being deleted")
    return Step(Action.SKIP if is_current(desired, live) else Action.APPLY)


def is_current(desired: Object, live: Object) -> bool:
    """True where nothing desired is missing and nothing we once set is left over."""
    annotations = mapping(live, "metadata", "annotations")
    return annotations.get(INTENT) == desired["metadata"]["annotations"][INTENT] and covers(live, desired)


def migration_patch(live: Object) -> list[Object]:
    """The JSON patch that makes our fields those of an *Apply*; empty where they are, or where we have none.

    The fields of an object we created by POST belong to our manager's *Update* entry, and an apply would not remove a
    field from there. The tests in the patch, not the resourceVersion, guard it: the status of a Deployment changes all
    the time, and does not matter here.
    """
    entries_ = entries(live, "metadata", "managedFields")
    ours = {entry["operation"]: index for index, entry in enumerate(entries_) if _is_our_entry(entry)}
    if "Update" not in ours or "Apply" in ours:
        return []
    path = f"/metadata/managedFields/{ours['Update']}"
    return [
        {"op": "test", "path": "/metadata/uid", "value": live["metadata"]["uid"]},
        {"op": "test", "path": f"{path}/manager", "value": FIELD_MANAGER},
        {"op": "test", "path": f"{path}/operation", "value": "Update"},
        {"op": "replace", "path": f"{path}/operation", "value": "Apply"},
    ]


def _who(owner: Mapping[str, Any]) -> tuple[str, str, str]:
    """Group, kind and name: others have a kind Memcached too, and a kind of ours has several versions."""
    return owner["apiVersion"].partition("/")[0], owner["kind"], owner["name"]


def _is_our_entry(entry: Mapping[str, Any]) -> bool:
    return entry.get("manager") == FIELD_MANAGER and not entry.get("subresource")


def _was_ours(desired: Object, live: Object) -> bool:
    """Orphaned by hand: no controller, but our labels and our field manager."""
    ours = any(map(_is_our_entry, entries(live, "metadata", "managedFields")))
    return ours and labels.has(live, desired["metadata"]["labels"])
