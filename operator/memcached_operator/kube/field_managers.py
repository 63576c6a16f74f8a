"""The clients that changed an object, from `metadata.managedFields`. Pure functions.

The API server records the owner of each field there (Kubernetes documentation, "Server-Side Apply").
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias, cast

from memcached_operator.kube.compare import ATOMIC_FIELDS, covers
from memcached_operator.kube.labels import MANAGER
from memcached_operator.kube.resource import Object, nested_list, nested_map

Fields: TypeAlias = Mapping[str, "Fields"]
"""A set of fields (`fieldsV1`): the fields below each field."""

Path = tuple[str, ...]
"""The names of the fields from the root of an object to one of its fields."""


class Manager(NamedTuple):
    """A field manager: the name of a client, and the subresource that it wrote."""

    name: str
    subresource: str = ""

    @property
    def is_operator(self) -> bool:
        """True for this operator, and for another instance of it."""
        return self.name == MANAGER


def differences(live: Object, desired: Object, path: Path = ()) -> Iterator[Path]:
    """The fields of `desired` whose value `live` does not have. A list, and a map that is replaced whole, is one field.

    `path`: the names of the fields above.
    """
    for name, value in desired.items():
        if covers(live, {name: value}, path):
            continue
        other = live.get(name)
        if isinstance(value, dict) and isinstance(other, dict) and name not in ATOMIC_FIELDS:
            yield from differences(cast("Object", other), cast("Object", value), (*path, name))
        else:
            yield (*path, name)


def manager_of(live: Object, paths: Iterable[Path]) -> Manager | None:
    """The client that changed one of these fields last. Other clients take precedence over the operator.

    `live`: as read from the API server, because the store does not keep the fields of a manager. None if no client owns
    the fields, for example because one has removed them.
    """
    changed = tuple(paths)
    entries = [
        entry for entry in nested_list(live, "metadata", "managedFields") if entry.get("subresource") != "status"
    ]
    owners = [entry for entry in entries if any(_owns(nested_map(entry, "fieldsV1"), path) for path in changed)]
    owners.sort(key=lambda entry: (entry.get("manager") != MANAGER, entry.get("time") or ""))
    return Manager(owners[-1].get("manager") or "", owners[-1].get("subresource") or "") if owners else None


def _owns(fields: Fields, path: Path) -> bool:
    """Whether a set of fields contains a field, or the whole map above it."""
    for name in path:
        below = fields.get(f"f:{name}")
        if below is None:
            return False
        if not below:
            return True
        fields = below
    return True


def is_our_entry(entry: Mapping[str, object]) -> bool:
    """Whether an entry of managedFields is one of the operator, except of a status."""
    return entry.get("manager") == MANAGER and not entry.get("subresource")


def has_co_owners(live: Object) -> bool:
    """Whether a client other than the operator has created or updated an object. Of a cached object, too."""
    return any(map(_is_update_of_others, nested_list(live, "metadata", "managedFields")))


def takeover(live: Object, applied: Object) -> list[Object]:
    """The JSON patch that leaves to the clients that updated an object only the fields that the operator does not own.

    `live`: with all of its managedFields. `applied`: the result of a dry run of the operator's apply. Without the
    patch, an apply that leaves a field out would not remove it. It fails if an entry of the others has changed since.
    """
    ours = next(each for each in nested_list(applied, "metadata", "managedFields") if _is_applied_by_us(each))
    entries = nested_list(live, "metadata", "managedFields")
    operations: list[Object] = []
    for index, entry in reversed(list(enumerate(entries))):  # a removal changes the index of later entries
        fields = nested_map(entry, "fieldsV1")
        left = _without(fields, nested_map(ours, "fieldsV1"))
        if left == fields or not _is_update_of_others(entry):
            continue
        path = f"/metadata/managedFields/{index}"
        change: Object = {"op": "replace", "path": path, "value": {**entry, "fieldsV1": left}}
        operations += [{"op": "test", "path": path, "value": entry}, change if left else {"op": "remove", "path": path}]
    missing = not any(map(is_our_entry, entries))
    return [*operations, *([{"op": "add", "path": "/metadata/managedFields/-", "value": ours}] if missing else [])]


def _is_update_of_others(entry: Mapping[str, object]) -> bool:
    return entry.get("operation") == "Update" and not entry.get("subresource") and not is_our_entry(entry)


def _is_applied_by_us(entry: Mapping[str, object]) -> bool:
    return entry.get("operation") == "Apply" and is_our_entry(entry)


def _without(fields: Fields, others: Fields) -> dict[str, Fields]:
    """The difference of two sets of fields."""
    left: dict[str, Fields] = {}
    for name, below in fields.items():
        if name not in others:
            left[name] = below
        elif below and (rest := _without(below, others[name])) and others[name]:
            left[name] = rest
    return left
