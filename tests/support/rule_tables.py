"""The tables of invalid and valid specs by kind. Unit and integration tests use the same ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from memcached_api.appservice.types import APPSERVICE
from memcached_api.kind import Kind
from memcached_api.memcached.types import MEMCACHED
from memcached_api.memcachedproxy.types import MEMCACHEDPROXY
from support import invalid_appservice, invalid_memcached, invalid_memcachedproxy
from support.invalid import Spec, Table


@dataclass(frozen=True)
class Tables:
    """The tables of a kind.

    `required`: the fields without a default. `rules` and `types`: violations of the rules and of the types. `valid`:
    specs that are close to a rule.
    """

    kind: Kind[Any]
    required: Spec
    rules: Table
    types: Table
    valid: Mapping[str, Spec]

    def obj(self, spec: Spec, name: str = "cache", **metadata: str) -> dict[str, Any]:
        """An object with this spec and the required fields."""
        return {
            "apiVersion": f"{self.kind.group}/{self.kind.versions[0]}",
            "kind": self.kind.name,
            "metadata": {"name": name, **metadata},
            "spec": {**self.required, **spec},
        }


def _tables(kind: Kind[Any], tables: Any, **required: Any) -> Tables:
    return Tables(kind, required, tables.RULES, tables.TYPES, tables.VALID)


TABLES: Final = (
    _tables(MEMCACHED, invalid_memcached),
    _tables(MEMCACHEDPROXY, invalid_memcachedproxy, memcachedRef={"name": "sessions"}),
    _tables(APPSERVICE, invalid_appservice, image="docker.io/library/nginx:1.28"),
)


def tables_of(kind: Kind[Any]) -> Tables:
    """The tables of a kind."""
    return next(tables for tables in TABLES if tables.kind is kind)
