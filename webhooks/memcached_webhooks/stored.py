"""The stored object that an update changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypedDict, cast

import msgspec

from memcached_api.values import nested_field
from memcached_webhooks.review import DECODE_ERRORS

Spec = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Stored:
    """The stored object. `raw`: its JSON, with the field managers, which are only decoded if they are needed."""

    spec: Spec
    raw: bytes = b"{}"

    def has_manager(self, path: str) -> bool:
        """Whether a client has set a field of the spec, by its path, such as `agent/image`.

        The API server records the field managers before it calls admission: a field that admission set has none.
        """
        keys = ("fieldsV1", *_keys(path))
        try:
            obj = _decoder(path).decode(self.raw)
        except DECODE_ERRORS:
            return False
        entries = nested_field(obj, "metadata", "managedFields") or ()
        return any(nested_field(entry, *keys) is not None for entry in entries)


def _keys(path: str) -> list[str]:
    """The keys of a field in `fieldsV1`."""
    return [f"f:{name}" for name in ("spec", *path.split("/"))]


@cache
def _decoder(path: str) -> msgspec.json.Decoder[Any]:
    """Decodes only the managers of one field: others of any number take no memory."""
    managed: Any = msgspec.Raw
    for key in reversed(_keys(path)):
        managed = _object(key, managed)
    entry = _object("fieldsV1", managed)
    return msgspec.json.Decoder(_object("metadata", _object("managedFields", list[entry])))


def _object(key: str, value: Any) -> Any:
    """The type of an object with this key. Type checkers do not support types that are created at run time."""
    return cast("Any", TypedDict)("Object", {key: value}, total=False)
