"""The clients that changed an object, from `metadata.managedFields`. Pure functions.

The API server records the owner of each field there (Kubernetes documentation, "Server-Side Apply").
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from memcached_operator.kube.compare import ATOMIC_FIELDS, covers
from memcached_operator.kube.labels import MANAGER
from memcached_operator.kube.resource import Object, nested_list, nested_map

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

    `live`: as read from the API server, because the cache does not keep the fields of a manager. None if no client owns
    the fields, for example because one has removed them.
    """
    changed = tuple(paths)
    entries = [
        entry for entry in nested_list(live, "metadata", "managedFields") if entry.get("subresource") != "status"
    ]
    owners = [entry for entry in entries if any(_owns(nested_map(entry, "fieldsV1"), path) for path in changed)]
    owners.sort(key=lambda entry: (entry.get("manager") != MANAGER, entry.get("time") or ""))
    return Manager(owners[-1].get("manager") or "", owners[-1].get("subresource") or "") if owners else None


def _owns(fields: Mapping[str, Any], path: Path) -> bool:
    """Whether a set of fields contains a field, or the whole map above it."""
    for name in path:
        below = fields.get(f"f:{name}")
        if below is None:
            return False
        if not below:
            return True
        fields = below
    return True
