"""A kind → its CustomResourceDefinition, rules included."""

from typing import Any, Final

from crds.schema import Schema, struct_schema, without
from memcached_api.conditions import UNOBSERVED_GENERATION
from memcached_api.effects import Effect, FieldEffect, Needs
from memcached_api.kind import Column, Kind
from memcached_api.validation.rules import Rule

IN_PLACE: Final = " unless made in place (docs/warm.md)"


def definition(kind: Kind[Any]) -> dict[str, Any]:
    """The CRD as it goes to the API server."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": list(kind.short_names),
            },
            "scope": "Namespaced",
            "versions": [_version(kind, name, stored=name == kind.versions[0]) for name in kind.versions],
        },
    }


def _version(kind: Kind[Any], name: str, *, stored: bool) -> dict[str, Any]:
    """A version; only the stored one has descriptions, because they would be the same."""
    schema = object_schema(kind)
    return {
        "name": name,
        "served": True,
        "storage": stored,
        "additionalPrinterColumns": [_column(column, described=stored) for column in kind.columns],
        "schema": {"openAPIV3Schema": schema if stored else without(schema, "description")},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.size",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
    }


def _column(column: Column, *, described: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if described:
        entry["description"] = column.description
    return entry | ({"priority": column.priority} if column.priority else {})


def object_schema(kind: Kind[Any]) -> Schema:
    """The schema of the whole object, each rule at the node it looks at."""
    spec = struct_schema(kind.spec)
    # The default lets the defaults below it take effect for an object without any spec.
    spec |= {} if "required" in spec else {"default": {}}
    root: Schema = {
        "description": kind.description,
        "type": "object",
        **({"required": ["spec"]} if "required" in spec else {}),
        "properties": {
            "apiVersion": {"description": "Version of the schema this object is written in.", "type": "string"},
            "kind": {"description": f"Always {kind.name}.", "type": "string"},
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": spec,
            # Otherwise, an object that no controller has seen yet looks current to tools such as Flux.
            "status": struct_schema(kind.status) | {"default": {"observedGeneration": UNOBSERVED_GENERATION}},
        },
    }
    for path, row in kind.fields.items():
        described = node(root["properties"]["spec"], path.removeprefix("spec."))
        described["description"] += _effect(row, in_place=kind.in_place)
    for rule in kind.rules:
        _add(root, rule.path, validation(rule))
    for change in kind.transitions:
        _add(root, change.path, {"rule": change.cel, "message": change.message, "fieldPath": change.field_path})
    return root


def _effect(row: FieldEffect, *, in_place: bool) -> str:
    """What a change of a field does, as a sentence for its description."""
    if row.effect is Effect.NOTHING or row.described:
        return ""
    return f" A change replaces the pods{IN_PLACE if in_place and row.needs is not Needs.NOTHING else ''}."


def _add(root: Schema, at: str, entry: dict[str, Any]) -> None:
    node(root, at).setdefault("x-kubernetes-validations", []).append(entry)


def node(schema: Schema, at: str) -> Schema:
    """The schema at a path such as `spec.tls[*].name`. Nothing may be said of metadata but at the root."""
    steps = at.replace("[*]", ".*").split(".") if at and not at.startswith("metadata.") else ()
    for step in steps:
        if step == "*":
            schema = schema["items"] if "items" in schema else schema["additionalProperties"]
        else:
            schema = schema["properties"][step]
    return schema


def validation(rule: Rule) -> dict[str, Any]:
    """The rule as an entry of `x-kubernetes-validations`."""
    entry: dict[str, Any] = {"rule": _ratcheted(rule), "message": rule.message}
    if rule.message_expression:
        entry["messageExpression"] = rule.message_expression
    if rule.field_path:
        entry["fieldPath"] = rule.field_path
    if "oldSelf" in entry["rule"]:
        entry["optionalOldSelf"] = True
    return entry


def _ratcheted(rule: Rule) -> str:
    """CEL that lets an update pass whose inputs are as before.

    The API server does the same by itself, but for the whole node: it would ask again when a field beside them changes.
    One side of each comparison is without `?`, so that the API server can bound its cost.
    """
    if not rule.inputs:
        return rule.cel
    unchanged = [_equal(path, "''") for path in rule.inputs]
    unchanged += [_equal_or_absent(path, default) for path, default in rule.optional_inputs]
    unchanged += [_equal_or_absent(path, absent="['']") for path in rule.list_inputs]
    return f"({rule.cel}) || (oldSelf.hasValue() && {' && '.join(unchanged)})"


def _equal(path: str, absent: str) -> str:
    """CEL: equal, for a field that is set now. `absent`: a value that it never has."""
    return f"oldSelf.value(){_optional(path)}.orValue({absent}) == self{_plain(path)}"


def _equal_or_absent(path: str, default: str = "", absent: str = "''") -> str:
    """CEL: equal, where an absent field counts as its default; without one, it equals only an absent field."""
    old, new = f"oldSelf.value(){_optional(path)}", f"self{_optional(path)}"
    if default:
        return f"{old}.orValue({default}) == {new}.orValue({default})"
    return f"({new}.hasValue() ? {_equal(path, absent)} : !{old}.hasValue())"


def _plain(path: str) -> str:
    """`limits[memory]` as CEL: `.limits['memory']`."""
    return f".{path}".replace("[", "['").replace("]", "']")


def _optional(path: str) -> str:
    return _plain(path).replace(".", ".?").replace("[", "[?")
