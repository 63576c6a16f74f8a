"""Whose is it, and what is to be done about it: pure decisions about one child."""

from dataclasses import dataclass
from enum import Enum

from memcached_operator.engine import labels
from memcached_operator.engine.client import FIELD_MANAGER
from memcached_operator.engine.compare import INTENT, covers
from memcached_operator.engine.resource import Object, controller_of, entries, mapping


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
    why: str = ""


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
        if (controller["kind"], controller["name"]) == (cr["kind"], cr["metadata"]["name"]):
            return Step(Action.WAIT, f"{what} of the earlier {cr['kind']} of this name is still being deleted")
        return Step(Action.CONFLICT, f"{what} belongs to {controller['kind']} {controller['name']}")
    if live["metadata"].get("deletionTimestamp"):
        return Step(Action.WAIT, f"{what} is being deleted")
    return Step(Action.SKIP if is_current(desired, live) else Action.APPLY)


def is_current(desired: Object, live: Object) -> bool:
    """True where nothing desired is missing and nothing we once set is left over."""
    annotations = mapping(live, "metadata", "annotations")
    return annotations.get(INTENT) == desired["metadata"]["annotations"][INTENT] and covers(live, desired)


def needs_handover(live: Object) -> bool:
    """True before the first apply of an object we created by POST.

    Its fields still belong to our manager's *Update* entry: an apply would not remove a field from there.
    """
    operations = [
        entry["operation"] for entry in live["metadata"]["managedFields"] if entry["manager"] == FIELD_MANAGER
    ]
    return "Update" in operations and "Apply" not in operations


def handed_over(live: Object) -> list[Object]:
    """The JSON patch that turns our Update entry into an Apply entry; needs the complete managedFields."""
    entries = [
        {**entry, "operation": "Apply"}
        if entry["manager"] == FIELD_MANAGER and entry["operation"] == "Update" and not entry.get("subresource")
        else entry
        for entry in live["metadata"]["managedFields"]
    ]
    version = live["metadata"]["resourceVersion"]
    return [
        {"op": "test", "path": "/metadata/uid", "value": live["metadata"]["uid"]},
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
    ]


def _was_ours(desired: Object, live: Object) -> bool:
    """Orphaned by hand: no controller, but our labels and our field manager."""
    managers = {entry["manager"] for entry in entries(live, "metadata", "managedFields")}
    return FIELD_MANAGER in managers and labels.has(live, desired["metadata"]["labels"])
