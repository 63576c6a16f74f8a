"""The content of the CRDs, and how it is generated from rules and types."""

import re
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta

from crds.crd import definition, object_schema, validation
from crds.descriptions import field_descriptions, type_description
from crds.docs import page
from crds.schema import struct_schema
from memcached_api.appservice.types import APPSERVICE
from memcached_api.kinds import Kind
from memcached_api.kubernetes import Quantity, ResourceRequirements
from memcached_api.memcached.types import MEMCACHED
from memcached_api.registry import KINDS
from memcached_api.validation.rules import Rule, value_rule

CRD = definition(MEMCACHED)
SCHEMA = object_schema(MEMCACHED)
SPEC = SCHEMA["properties"]["spec"]["properties"]
STATUS = SCHEMA["properties"]["status"]["properties"]


def test_names():
    assert CRD["metadata"]["name"] == "memcacheds.cache.example.com"
    assert CRD["spec"]["names"] == {
        "kind": "Memcached",
        "listKind": "MemcachedList",
        "plural": "memcacheds",
        "singular": "memcached",
        "shortNames": ["mc"],
    }


def test_both_versions_are_served_and_equal_and_v1_is_stored():
    v1, v1alpha1 = CRD["spec"]["versions"]
    assert (v1["name"], v1["served"], v1["storage"]) == ("v1", True, True)
    assert (v1alpha1["name"], v1alpha1["served"], v1alpha1["storage"]) == ("v1alpha1", True, False)
    assert {**v1alpha1, "name": "v1", "storage": True} == v1
    assert "conversion" not in CRD["spec"]


def test_subresources():
    assert CRD["spec"]["versions"][0]["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.size",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }


def test_defaults():
    assert SCHEMA["properties"]["spec"]["default"] == {}
    assert (SPEC["size"]["default"], SPEC["containerPort"]["default"]) == (1, 11211)
    assert SPEC["cache"]["default"] == {}
    assert [name for name, field in SPEC["cache"]["properties"].items() if "default" in field] == []
    assert [name for name, field in SPEC.items() if "default" in field] == ["size", "containerPort", "cache"]


def test_bounds():
    assert (SPEC["size"]["minimum"], SPEC["size"]["format"]) == (1, "int32")
    assert (SPEC["containerPort"]["minimum"], SPEC["containerPort"]["maximum"]) == (1024, 65535)
    assert (SPEC["image"]["minLength"], SPEC["image"]["maxLength"]) == (1, 1024)
    assert SPEC["imagePullPolicy"]["enum"] == ["Always", "IfNotPresent", "Never"]


def nodes(schema: dict[str, Any], path: str = "") -> list[tuple[str, dict[str, Any]]]:
    children = [(f"{path}.{name}", child) for name, child in schema.get("properties", {}).items()]
    children += [(f"{path}[*]", schema[key]) for key in ("items", "additionalProperties") if key in schema]
    return [(path, schema), *(node for name, child in children for node in nodes(child, name))]


NODES = [(f"{kind.name}{path}", node) for kind in KINDS for path, node in nodes(object_schema(kind))]


@pytest.mark.parametrize(("path", "node"), [node for node in NODES if ".spec." in node[0]])
def test_every_spec_field_is_bounded_and_described(path: str, node: dict[str, Any]):
    assert "description" in node or path.endswith("[*]")
    if node.get("type") == "string":
        assert "maxLength" in node or "enum" in node
    if node.get("type") == "array":
        assert "maxItems" in node
    if "additionalProperties" in node:
        assert "maxProperties" in node
    if node.get("x-kubernetes-int-or-string"):
        assert node["maxLength"] <= 64
        assert re.search(node.get("pattern", ""), "64Mi")


PASSED_ON = re.compile(
    r"Memcached\.spec\.podTemplate\.spec\.(affinity|tolerations|topologySpread\w+|securityContext)\b"
)
"""Fields of Kubernetes that are written into the pod template unchanged, under Kubernetes' own bounds."""


@pytest.mark.parametrize(("path", "node"), [at for at in NODES if "minimum" in at[1] and not PASSED_ON.match(at[0])])
def test_lower_bound_has_a_cel_rule_with_the_remedy(path: str, node: dict[str, Any]):
    assert any(f"self >= {node['minimum']}" in rule["rule"] for rule in node["x-kubernetes-validations"])


def test_list_types():
    secrets, nodes, conditions = SPEC["imagePullSecrets"], STATUS["nodes"], STATUS["conditions"]
    assert (secrets["x-kubernetes-list-type"], secrets["x-kubernetes-list-map-keys"]) == ("map", ["name"])
    assert (conditions["x-kubernetes-list-type"], conditions["x-kubernetes-list-map-keys"]) == ("map", ["type"])
    assert nodes["x-kubernetes-list-type"] == "set"
    assert conditions["items"]["required"] == ["type", "status", "reason", "message", "lastTransitionTime"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_rule_is_in_the_crd_once(kind: Kind[Any]):
    found = [rule for _, node in nodes(object_schema(kind)) for rule in node.get("x-kubernetes-validations", [])]
    every = [*kind.rules, *kind.transitions]
    assert len(found) == len(every)
    assert {rule["message"] for rule in found} == {rule.message for rule in every}


def test_name_rule_is_at_the_root():
    (rule,) = SCHEMA["x-kubernetes-validations"]
    assert rule["fieldPath"] == ".metadata.name"
    assert rule["optionalOldSelf"] is True


def test_rule_for_one_value():
    rule = value_rule("spec.size", bool, "self > 0", "no")
    assert validation(rule) == {"rule": "self > 0", "message": "no"}


def test_rule_for_several_fields_is_evaluated_only_if_one_of_them_changes():
    rule = Rule("spec", lambda _: (), "c", "no", "'m'", ".limits.memory", ("limits[memory]", "cache.memory"))
    assert validation(rule) == {
        "rule": "(c) || (oldSelf.hasValue()"
        " && oldSelf.value().?limits[?'memory'].orValue('') == self.limits['memory']"
        " && oldSelf.value().?cache.?memory.orValue('') == self.cache.memory)",
        "message": "no",
        "messageExpression": "'m'",
        "fieldPath": ".limits.memory",
        "optionalOldSelf": True,
    }


class Sample(msgspec.Struct, rename="camel"):
    """A struct
    of two lines."""

    needed_field: str
    """A required
    field."""

    amount: Quantity = "1"
    """A quantity."""

    count: Annotated[int, Meta(ge=2)] = 3
    """A count."""


def test_spec_is_optional_without_required_fields():
    assert "required" not in SCHEMA
    assert SCHEMA["properties"]["spec"]["default"] == {}


def test_spec_is_required_with_required_fields():
    schema = object_schema(APPSERVICE)
    assert (schema["required"], schema["properties"]["spec"]["required"]) == (["spec"], ["image"])
    assert "default" not in schema["properties"]["spec"]


def test_structs():
    assert struct_schema(Sample) == {
        "description": "A struct of two lines.",
        "type": "object",
        "required": ["neededField"],
        "properties": {
            "neededField": {"description": "A required field.", "type": "string"},
            "amount": {
                "description": "A quantity.",
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "x-kubernetes-int-or-string": True,
                "pattern": SPEC["cache"]["properties"]["memory"]["pattern"],
                "maxLength": 64,
                "default": "1",
            },
            "count": {"description": "A count.", "type": "integer", "format": "int64", "minimum": 2, "default": 3},
        },
    }


def test_kubernetes_types_have_the_descriptions_of_kubernetes():
    assert type_description(ResourceRequirements) == "ResourceRequirements describes the compute resource requirements."
    assert field_descriptions(ResourceRequirements)["limits"].startswith("Limits describes the maximum amount")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_field_and_rule_is_on_the_reference_page(kind: Kind[Any]):
    text = page([kind])
    fields = (*kind.spec.__struct_encode_fields__, *kind.status.__struct_encode_fields__)
    assert [field for field in fields if f"| `{field}` |" not in text] == []
    assert [rule.message for rule in kind.rules if rule.message not in text] == []


def test_every_row_of_the_reference_page_is_one_line():
    rows = [line for line in page(KINDS).splitlines() if line.startswith("|") or line.endswith("|")]
    assert [row for row in rows if not (row.startswith("|") and row.endswith("|"))] == []


def test_rules_are_listed_with_the_field_that_the_api_server_reports():
    text = page([MEMCACHED])
    assert "| `spec.resources.limits.memory` |" in text
    assert "| `metadata.name` |" in text
