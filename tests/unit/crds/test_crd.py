"""Bounds of every field of the CRDs, and the rules that depend on an earlier object."""

import re
from typing import Any

import pytest

from crds.crd import object_schema, validation
from memcached_api.registry import KINDS
from memcached_api.validation.rules import Rule


def nodes(schema: dict[str, Any], path: str) -> list[tuple[str, dict[str, Any]]]:
    """A schema and all nested schemas, by path."""
    children = [(f"{path}.{name}", child) for name, child in schema.get("properties", {}).items()]
    children += [(f"{path}[*]", schema[key]) for key in ("items", "additionalProperties") if key in schema]
    return [(path, schema), *(node for name, child in children for node in nodes(child, name))]


NODES = [node for kind in KINDS for node in nodes(object_schema(kind), kind.name)]
PASSED_ON = re.compile(
    r"Memcached\.spec\.podTemplate\.spec\.(affinity|tolerations|topologySpread\w+|securityContext)\b"
)
"""Fields of Kubernetes that are written into the pod template unchanged, under Kubernetes' own bounds."""


def unbounded(node: dict[str, Any]) -> bool:
    """Whether a tenant can store a value of any length."""
    return bool(
        (node.get("type") == "string" and not {"maxLength", "enum"} & node.keys())
        or (node.get("type") == "array" and "maxItems" not in node)
        or ("additionalProperties" in node and "maxProperties" not in node)
        or (node.get("x-kubernetes-int-or-string") and node.get("maxLength", 65) > 64)
    )


def test_every_spec_field_is_bounded_and_described() -> None:
    spec = [(path, node) for path, node in NODES if ".spec." in path]
    assert len(spec) > 100
    assert [path for path, node in spec if unbounded(node)] == []
    assert [path for path, node in spec if "description" not in node and not path.endswith("[*]")] == []


def test_lower_bound_has_a_cel_rule_with_the_remedy() -> None:
    bounded = {path: node for path, node in NODES if "minimum" in node and not PASSED_ON.match(path)}
    rules = {path: [rule["rule"] for rule in node["x-kubernetes-validations"]] for path, node in bounded.items()}
    assert [path for path, node in bounded.items() if f"self >= {node['minimum']}" not in " ".join(rules[path])] == []


@pytest.mark.parametrize(
    ("optional", "comparison"),
    [
        ((), ""),
        ((("size", "1"),), " && oldSelf.value().?size.orValue(1) == self.?size.orValue(1)"),
        (
            (("size", ""),),
            " && (self.?size.hasValue() ? oldSelf.value().?size.orValue('') == self.size"
            " : !oldSelf.value().?size.hasValue())",
        ),
    ],
)
def test_rule_for_several_fields_is_evaluated_only_if_one_of_them_changes(
    optional: tuple[tuple[str, str], ...], comparison: str
) -> None:
    inputs = ("limits[memory]", "cache.memory")
    rule = Rule("spec", lambda _: (), "c", "no", "'m'", ".limits.memory", inputs, optional)
    assert validation(rule) == {
        "rule": "(c) || (oldSelf.hasValue()"
        " && oldSelf.value().?limits[?'memory'].orValue('') == self.limits['memory']"
        f" && oldSelf.value().?cache.?memory.orValue('') == self.cache.memory{comparison})",
        "message": "no",
        "messageExpression": "'m'",
        "fieldPath": ".limits.memory",
        "optionalOldSelf": True,
    }
