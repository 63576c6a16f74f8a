"""The field managers of objects: `metadata.managedFields` and server-side apply.

Source: k8s.io/apimachinery, pkg/util/managedfields, and structured-merge-diff v6, merge/update.go.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, cast

from memcached_operator.kube.resource import Object
from simulation.api import field_sets
from simulation.api.errors import StatusError, bad_request
from simulation.api.field_sets import Fields, difference, intersection, union, with_named
from simulation.api.merging import compare, fields_of, merge, remove
from simulation.api.schema import Type

UPDATE, APPLY = "Update", "Apply"
BEFORE_APPLY: Final = "before-first-apply"
"""The manager of the fields of an object without managedFields, when an apply changes it."""
MAX_UPDATERS: Final = 10
OLD_UPDATERS: Final = "ancient-changes"
"""The manager of the fields of the oldest updaters, if there are more than MAX_UPDATERS."""

STRIPPED: Final = field_sets.of(
    *("apiVersion", "kind", "metadata"),
    *(
        f"metadata.{name}"
        for name in ("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation")
    ),
    *("metadata.managedFields", "metadata.resourceVersion"),
)
"""Fields that no manager owns."""


class Identity(NamedTuple):
    """A manager. Without a version for Apply: an applier has one entry for all versions."""

    operation: str
    manager: str
    version: str
    subresource: str


class Entry(NamedTuple):
    """The fields of a manager. `time`: empty if it is not known. `stored`: the entry of managedFields with all this."""

    version: str
    time: str
    fields: Fields
    stored: Object | None = None


Managed = dict[Identity, Entry]


@dataclass(frozen=True)
class Write:
    """A write by a field manager. `reset`: fields that the endpoint does not change. `only`: all that it changes."""

    manager: str
    version: str
    time: str
    subresource: str = ""
    reset: Fields | None = None
    only: Fields | None = None

    def filtered(self, fields: Fields) -> Fields:
        """The fields that this write can change."""
        if self.only is not None:
            fields = field_sets.within(fields, self.only)
        return fields if self.reset is None else field_sets.without(fields, self.reset)

    def identity(self, operation: str) -> Identity:
        """The manager."""
        return Identity(operation, self.manager, self.version if operation == UPDATE else "", self.subresource)


def decoded(entries: Iterable[Object], *, are_stored: bool = True) -> Managed:
    """The managers in managedFields. `are_stored`: of a stored object, not of a request."""
    found: Managed = {}
    for entry in entries:
        operation, version = entry["operation"], entry["apiVersion"]
        name, subresource = entry.get("manager", ""), entry.get("subresource", "")
        who = Identity(operation, name, version if operation == UPDATE else "", subresource)
        fields = field_sets.decoded(entry.get("fieldsV1", {}))
        found[who] = Entry(version, entry.get("time", ""), fields, entry if are_stored else None)
    return found


def encoded(managed: Managed) -> list[Object]:
    """managedFields, in the order of the API server."""
    ordered = sorted(managed.items(), key=lambda pair: (pair[0][0], pair[1].time, pair[0][1], *pair[0][2:]))
    return [entry.stored or _entry(who, entry) for who, entry in ordered]


def _entry(who: Identity, entry: Entry) -> Object:
    return {
        **({"manager": who.manager} if who.manager else {}),
        "operation": who.operation,
        "apiVersion": entry.version,
        **({"time": entry.time} if entry.time else {}),
        "fieldsType": "FieldsV1",
        "fieldsV1": field_sets.encoded(entry.fields),
        **({"subresource": who.subresource} if who.subresource else {}),
    }


def updated(kind: Type, live: Object, new: Object, entries: Any, write: Write) -> list[Object]:
    """managedFields after an update from `live`, which has no uid if it is created, to `new`.

    `entries`: managedFields in the request; None if there are none or they do not count.
    """
    stored: Sequence[Object] = live["metadata"].get("managedFields") or ()
    if entries in ([], [{}]):  # the request removes all of them
        managed: Managed = {}
    elif entries and _are_valid(entries):
        managed = decoded(entries, are_stored=entries is stored)
    else:
        managed = decoded(stored)
    if not managed and live["metadata"].get("uid"):
        return []
    return encoded(_capped(_updated(kind, _plain(live), _plain(new), managed, write)))


def _are_valid(entries: Sequence[Mapping[str, Any]]) -> bool:
    return all(
        entry.get("operation") in (UPDATE, APPLY) and entry.get("apiVersion") and entry.get("fieldsType") == "FieldsV1"
        for entry in entries
    )


def _plain(obj: Object) -> Object:
    """The object without managedFields."""
    meta = obj["metadata"]
    if "managedFields" not in meta:
        return obj
    return {**obj, "metadata": {name: value for name, value in meta.items() if name != "managedFields"}}


def _updated(kind: Type, live: Object, new: Object, managed: Managed, write: Write) -> Managed:
    """The managers after an update. The updater owns the changed fields; other managers lose them."""
    changes = compare(kind, live, new)
    changed = write.filtered(union(changes.added, changes.modified))
    lost = union(changed, write.filtered(changes.removed))
    left = _without(managed, lost)
    owned = difference(changed, STRIPPED)
    if owned:
        me = write.identity(UPDATE)
        before = left[me].fields if me in left else {}
        left[me] = Entry(write.version, write.time, union(before, owned))
    return left


def _without(managed: Managed, lost: Fields) -> Managed:
    if not lost:
        return dict(managed)
    found: Managed = {}
    for who, entry in managed.items():
        left = difference(entry.fields, lost)
        if left == entry.fields:
            found[who] = entry
        elif left:
            found[who] = Entry(entry.version, entry.time, left)
    return found


def _capped(managed: Managed) -> Managed:
    updaters = [who for who in managed if who.operation == UPDATE]
    surplus = len(updaters) - MAX_UPDATERS
    if surplus <= 0:
        return managed
    updaters.sort(key=lambda who: (managed[who].time, who))
    oldest = updaters[: surplus + 1]
    bucket = Identity(UPDATE, OLD_UPDATERS, oldest[0].version, "")
    fields: Fields = {}
    for who in oldest:
        fields = union(fields, managed[who].fields)
    kept = {who: entry for who, entry in managed.items() if who not in oldest}
    return {**kept, bucket: Entry(oldest[0].version, managed[oldest[-1]].time, fields)}


def applied(kind: Type, live: Object, config: Object, write: Write, *, force: bool) -> tuple[Object, list[Object]]:
    """The object with an applied configuration, and its managedFields. Raises StatusError for a conflict."""
    if config["metadata"].get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    managed = decoded(live["metadata"].get("managedFields") or ())
    live = _plain(live)
    if not managed and live["metadata"].get("uid"):
        before = replace(write, manager=BEFORE_APPLY)
        managed = _updated(kind, {"metadata": {}}, live, managed, before)
    me = write.identity(APPLY)
    last, fields = managed.get(me), write.filtered(fields_of(kind, config))
    managed[me] = Entry(write.version, last.time if last else "", fields)
    new = merge(kind, live, config)
    if last is not None:
        new = _pruned(kind, new, last.fields, fields, managed)
    changes = compare(kind, live, new)
    changed = write.filtered(union(changes.added, changes.modified))
    others = {who: entry for who, entry in managed.items() if who != me}
    conflicts = {who: common for who, entry in others.items() if (common := intersection(entry.fields, changed))}
    if conflicts and not force:
        raise _conflict(conflicts)
    left = _without(others, union(changed, write.filtered(changes.removed)))
    owned = difference(fields, STRIPPED)
    if owned:
        left[me] = Entry(write.version, managed[me].time if changes.empty else write.time, owned)
    return new, encoded(left)


def _pruned(kind: Type, merged: Object, last: Fields, now: Fields, managed: Managed) -> Object:
    """The object without the fields that the applier no longer applies and that no other manager owns."""
    if not difference(last, now):
        return merged
    owned: Fields = {}
    for entry in managed.values():
        owned = union(owned, entry.fields)
    last, owned = with_named(kind, last), with_named(kind, owned)
    all_fields = with_named(kind, fields_of(kind, merged))
    pruned = remove(kind, merged, last) or {}
    kept = union(with_named(kind, fields_of(kind, pruned)), owned)
    pruned = remove(kind, merged, difference(all_fields, kept)) or {}
    left = with_named(kind, fields_of(kind, pruned))
    return remove(kind, merged, intersection(difference(all_fields, left), last)) or {}


def _conflict(conflicts: Mapping[Identity, Fields]) -> StatusError:
    ordered = sorted(conflicts, key=_conflict_order)
    found = [(_name(who), path) for who in ordered for path in field_sets.paths(conflicts[who])]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {name}", "field": path} for name, path in found
    ]
    if len(found) == 1:
        name, path = found[0]
        message = f"Apply failed with 1 conflict: conflict with {name}: {path}"
    else:
        lines: list[str] = []
        for who in ordered:
            lines.append(f"conflicts with {_name(who)}:")
            lines += [f"- {path}" for path in field_sets.paths(conflicts[who])]
        message = f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
    return StatusError(409, "Conflict", message, {"causes": causes})


def _conflict_order(who: Identity) -> tuple[Any, ...]:
    """The order of the JSON of managers, which ends before a subresource."""
    return who.manager, who.operation, who.version, not who.subresource, who.subresource


def _name(who: Identity) -> str:
    subresource = f' with subresource "{who.subresource}"' if who.subresource else ""
    return f'"{who.manager}"{subresource}' + (f" using {who.version}" if who.operation == UPDATE else "")


def without_new_times(old: Any, new: list[Object]) -> list[Object]:
    """managedFields with the times of before, if nothing else differs (IgnoreManagedFieldsTimestampsTransformer)."""
    earlier = cast("Sequence[Object]", old or ())
    same = len(earlier) == len(new) and all(
        {**one, "time": ""} == {**other, "time": ""} for one, other in zip(earlier, new, strict=True)
    )
    return list(earlier) if same else new
