"""The rules of all kinds in Python. tests/integration/test_rules.py sends the same tables to API servers."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from memcached_api.kind import Kind
from memcached_api.validation.rules import Rule, rule_errors
from support.invalid import InvalidObject
from support.invalid_memcached import NAME, NAMES
from support.placing_edges import EDGES
from support.rule_tables import TABLES, Tables

BY_KIND = pytest.mark.parametrize("tables", TABLES, ids=lambda tables: tables.kind.name)


def cases(table: str) -> list[Any]:
    """The invalid objects of a table of all kinds."""
    return [
        pytest.param(tables.kind, tables.obj(invalid.spec), invalid, id=f"{tables.kind.name}: {invalid.name}")
        for tables in TABLES
        for invalid in getattr(tables, table)
        # The API server prunes or rejects unknown fields itself.
        if not invalid.expected[0].startswith("unknown field")
    ]


@pytest.mark.parametrize(("kind", "obj", "invalid"), cases("rules"))
def test_violation_names_field_value_and_remedy(kind: Kind[Any], obj: dict[str, Any], invalid: InvalidObject) -> None:
    errors = kind.validate(obj)
    message = ", ".join(map(str, errors))
    assert [part for part in invalid.expected if part not in message] == [], message
    parts = invalid.expected
    assert [error for error in errors if not (error.field.startswith(parts) or error.field.endswith(parts))] == []


@pytest.mark.parametrize(("kind", "obj", "invalid"), cases("types"))
def test_type_error_names_the_field(kind: Kind[Any], obj: dict[str, Any], invalid: InvalidObject) -> None:
    errors = kind.validate(obj)
    assert errors
    assert {error.field for error in errors} == {invalid.expected[0]}


@BY_KIND
def test_valid_specs_have_no_errors_and_are_decoded(tables: Tables) -> None:
    objects = {name: tables.obj(spec) for name, spec in tables.valid.items()}
    assert {name: errors for name, obj in objects.items() if (errors := tables.kind.validate(obj))} == {}
    for obj in objects.values():
        assert isinstance(tables.kind.decode(obj), tables.kind.spec)


@BY_KIND
def test_name_that_is_invalid_for_children_is_an_error(tables: Tables) -> None:
    for name in (*NAMES.values(), "", "A", "a-", "a\n", 1):
        (error,) = tables.kind.validate(tables.obj({}, "") | {"metadata": {"name": name}})
        assert str(error).startswith("metadata.name: Invalid value: ")
        assert error.message.startswith(NAME)
    for name in ("a", "a-1", "a" * 52):
        assert tables.kind.validate(tables.obj({}, name)) == []


def test_rules_that_repeat_those_of_kubernetes_accept_exactly_the_valid_specs() -> None:
    """Those of tests/integration/test_placing_edges.py, which compares them with Kubernetes."""
    tables = TABLES[0]
    found = {
        name: [str(error) for error in tables.kind.validate(tables.obj(spec))] for name, (spec, _) in EDGES.items()
    }
    assert {name: errors for name, errors in found.items() if (not errors) != EDGES[name][1]} == {}


BLOCKING = {"Memcached": 143, "MemcachedProxy": 99, "AppService": 32}
"""The number of rules that block. A new rule on an existing field does not: stored objects that violate it would no
longer be reconciled. Raise a number only for a rule of a new field, or if `blocking` describes the rule."""


@BY_KIND
def test_new_rule_does_not_stop_the_reconciliation_of_stored_objects(tables: Tables) -> None:
    assert not Rule("spec", lambda _: (), "true", "must not block").blocks
    assert sum(rule.blocks for rule in tables.kind.rules) == BLOCKING[tables.kind.name]


def objects(tables: Tables) -> Iterator[dict[str, Any]]:
    """Every invalid object of a kind that this module or test_memcached.py reports."""
    yield from (tables.obj(invalid.spec) for invalid in tables.rules)
    yield from (tables.obj(spec) for spec, valid in EDGES.values() if not valid)
    yield tables.obj({}, NAMES["too long"])


def violated(rules: Iterable[Rule], obj: dict[str, Any]) -> set[Rule]:
    """The rules that an object violates."""
    return {rule for rule in rules if any(rule_errors([rule], obj))}


@BY_KIND
def test_every_rule_is_violated_by_an_object_of_the_tables(tables: Tables) -> None:
    missing = set(tables.kind.rules)
    for obj in objects(tables):
        missing -= violated(missing, obj)
    assert [f"{rule.path}: {rule.message}" for rule in missing] == []
