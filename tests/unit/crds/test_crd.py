"""Bounds of every field of the CRDs, and the rules that depend on an earlier object."""

import json
import re
from typing import Any

import pytest

from crds.crd import definition, object_schema, validation
from memcached_api.kind import Kind
from memcached_api.memcached.types import MEMCACHED
from memcached_api.registry import KINDS
from memcached_api.validation.rules import Rule


def nodes(schema: dict[str, Any], path: str) -> list[tuple[str, dict[str, Any]]]:
    """A schema and all nested schemas, by path."""
    children = [(f"{path}.{name}", child) for name, child in schema.get("properties", {}).items()]
    children += [(f"{path}[*]", schema[key]) for key in ("items", "additionalProperties") if key in schema]
    return [(path, schema), *(node for name, child in children for node in nodes(child, name))]


NODES = [node for kind in KINDS for node in nodes(object_schema(kind), kind.name)]
PASSED_ON = re.compile(
    r"Memcached(Proxy)?\.spec\.podTemplate\.spec\.(affinity|tolerations|topologySpread\w+|securityContext)\b"
)
"""Fields of Kubernetes that are written into the pod template unchanged, under Kubernetes' own bounds."""


KNOWN = re.compile(r"elector\.match\w+|\.affinity\.\w+\.|\.tolerations\[")
"""The fields of selectors, affinities and tolerations, which a CRD would describe up to 14 times."""


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
    described = [path for path, _ in spec if not path.endswith("[*]") and not KNOWN.search(path)]
    assert [path for path, node in spec if "description" not in node and path in described] == []


def test_items_of_lists_have_no_defaults() -> None:
    """GitOps tools compare a list as a whole, so a default in one of its items would be a difference."""
    assert [path for path, node in NODES if ".spec." in path and "[*]" in path and "default" in node] == []


MAX_CRD = 200_000
"""Bytes of a CRD as compact JSON. Client-side apply stores it once more in an annotation, and Kubernetes limits those
of an object to 262,144 bytes together."""


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_crd_can_be_applied_by_client_side_apply(kind: Kind[Any]) -> None:
    assert len(json.dumps(definition(kind), separators=(",", ":"), ensure_ascii=False).encode()) < MAX_CRD


def test_only_the_stored_version_has_descriptions() -> None:
    stored, older = definition(MEMCACHED)["spec"]["versions"]
    root = stored["schema"]["openAPIV3Schema"]
    descriptions = [path for path, node in nodes(older["schema"]["openAPIV3Schema"], "") if "description" in node]
    assert descriptions == []
    assert "description" not in json.dumps(older["additionalPrinterColumns"])
    assert "of the Service" in root["properties"]["spec"]["properties"]["containerPort"]["description"]
    # The default of a status says that it is of no generation of the spec, in both versions.
    for version in (stored, older):
        status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
        assert status["default"] == {"observedGeneration": -1}


def test_lower_bound_has_a_cel_rule_with_the_remedy() -> None:
    bounded = {path: node for path, node in NODES if "minimum" in node and not PASSED_ON.match(path)}
    rules = {path: [rule["rule"] for rule in node["x-kubernetes-validations"]] for path, node in bounded.items()}
    assert [path for path, node in bounded.items() if f"self >= {node['minimum']}" not in " ".join(rules[path])] == []


@pytest.mark.parametrize(
    ("optional", "lists", "comparison"),
    [
        ((), (), ""),
        ((("size", "1"),), (), " && oldSelf.value().?size.orValue(1) == self.?size.orValue(1)"),
        (
            (("size", ""),),
            (),
            " && (self.?size.hasValue() ? oldSelf.value().?size.orValue('') == self.size"
            " : !oldSelf.value().?size.hasValue())",
        ),
        (
            (),
            ("args",),
            " && (self.?args.hasValue() ? oldSelf.value().?args.orValue(['']) == self.args"
            " : !oldSelf.value().?args.hasValue())",
        ),
    ],
)
def test_rule_for_several_fields_is_evaluated_only_if_one_of_them_changes(
    optional: tuple[tuple[str, str], ...], lists: tuple[str, ...], comparison: str
) -> None:
    inputs = ("limits[memory]", "cache.memory")
    rule = Rule("spec", lambda _: (), "c", "no", "'m'", ".limits.memory", inputs, optional, lists)
    assert validation(rule) == {
        "rule": "(c) || (oldSelf.hasValue()"
        " && oldSelf.value().?limits[?'memory'].orValue('') == self.limits['memory']"
        f" && oldSelf.value().?cache.?memory.orValue('') == self.cache.memory{comparison})",
        "message": "no",
        "messageExpression": "'m'",
        "fieldPath": ".limits.memory",
        "optionalOldSelf": True,
    }
