from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcached_api.annotations import INTENT_ANNOTATION
from memcached_operator.engine.writes.intent import digest_v1, intent_digest, with_intent, with_recorded_intent
from memcached_operator.kube.compare import covers, projection
from memcached_operator.kube.resource import Object

TEXT = st.sampled_from(["a", "b", "ab", "", "name", "uid", "port", "protocol", "selector", "from", "tolerations"])
JSON = st.recursive(
    st.sampled_from([None, False, True, 0, 1, -1, 0.5, 2**40]) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=4)
WITH_EXCEPTIONS = st.dictionaries(TEXT | st.sampled_from(["nodePort", "paused", "minReadySeconds"]), JSON, max_size=4)


COVERED: dict[str, tuple[Any, Any]] = {
    "equal scalars": ("a", "a"),
    "an empty intent": ({"a": 1}, {}),
    "added fields": ({"a": 1, "b": 2}, {"a": 1}),
    "added nested fields": ({"spec": {"a": 1, "b": 2}}, {"spec": {"a": 1}}),
    "equal lists of scalars": ([1, 2], [1, 2]),
    "a named item among others": (
        [{"name": "x"}, {"name": "a", "image": "i", "terminationMessagePath": "p"}],
        [{"name": "a", "image": "i"}],
    ),
    "named items in another order": ([{"name": "b"}, {"name": "a"}], [{"name": "a"}, {"name": "b"}]),
    "owners by uid, not by name": (
        [{"name": "same", "uid": "1"}, {"name": "same", "uid": "2"}],
        [{"name": "same", "uid": "2"}],
    ),
    "ports by number and protocol, not by name": (
        [{"port": 53, "protocol": "UDP", "nodePort": 1}, {"port": 53, "protocol": "TCP", "targetPort": 5353}],
        [{"port": 53, "protocol": "TCP", "targetPort": 5353}],
    ),
    "named port": (
        [{"port": 80, "protocol": "TCP", "name": "http"}],
        [{"port": 80, "protocol": "TCP"}],
    ),
    "container port among others": (
        [{"containerPort": 81, "protocol": "TCP"}, {"containerPort": 80, "protocol": "TCP"}],
        [{"containerPort": 80, "protocol": "TCP"}],
    ),
    "an equal atomic map": ({"selector": {"app": "x"}}, {"selector": {"app": "x"}}),
    "an equal peer": ({"ingress": [{"from": [{"podSelector": {}}]}]}, {"ingress": [{"from": [{"podSelector": {}}]}]}),
    "unnamed maps with additions": ([{"a": 1, "b": 2}], [{"a": 1}]),
    "values that the API server does not store": (
        {"spec": {}},
        {"spec": {"paused": False, "minReadySeconds": 0, "externalIPs": []}},
    ),
}


@pytest.mark.parametrize(("live", "desired"), COVERED.values(), ids=COVERED.keys())
def test_covered(live: Any, desired: Any) -> None:
    assert covers(live, desired)


NOT_COVERED: dict[str, tuple[Any, Any]] = {
    "another value": ({"a": 2}, {"a": 1}),
    "a missing field": ({}, {"a": 1}),
    "a missing nested field": ({"spec": {}}, {"spec": {"a": 1}}),
    "a missing value other than the one that is not stored": ({"spec": {}}, {"spec": {"minReadySeconds": 1}}),
    "a scalar instead of a map": ({"a": 1}, {"a": {"b": 1}}),
    "a scalar instead of a list": ({"a": 1}, {"a": [1]}),
    "a string instead of a list of its characters": ("ab", ["a", "b"]),
    "another item": ([1, 3], [1, 2]),
    "a longer list of scalars": ([1, 2, 3], [1, 2]),
    "a shorter list of scalars": ([1], [1, 2]),
    "a longer list of unnamed maps": ([{"a": 1}, {"a": 2}], [{"a": 1}]),
    "a list that should be empty": ([1], []),
    "a port of another protocol": ([{"port": 53, "protocol": "UDP"}], [{"port": 53, "protocol": "TCP"}]),
    "another node port": (
        [{"port": 80, "protocol": "TCP", "nodePort": 30001}],
        [{"port": 80, "protocol": "TCP", "nodePort": 30002}],
    ),
    "a node port to be allocated, of another port": (
        [{"port": 80, "protocol": "TCP", "nodePort": 30001}],
        [{"port": 81, "protocol": "TCP", "nodePort": 0}],
    ),
    "a named item that is missing": ([{"name": "b"}], [{"name": "a"}]),
    "a named item that differs": ([{"name": "a", "image": "j"}], [{"name": "a", "image": "i"}]),
    "scalars instead of named items": (["a"], [{"name": "a"}]),
    "a foreign entry in an atomic map": ({"selector": {"app": "x", "tier": "y"}}, {"selector": {"app": "x"}}),
    "a peer that admits more clients": (
        {"ingress": [{"from": [{"podSelector": {"a": "b"}, "namespaceSelector": {}}]}]},
        {"ingress": [{"from": [{"podSelector": {"a": "b"}}]}]},
    ),
    "a peer that admits fewer clients": (
        {"ingress": [{"from": [{"podSelector": {"a": "b"}}]}]},
        {"ingress": [{"from": [{"podSelector": {}}]}]},
    ),
    "a toleration of fewer taints": (
        {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]},
        {"tolerations": [{"key": "a", "operator": "Exists"}]},
    ),
    "an affinity for other pods": (
        {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "namespaces": ["a"]}]},
        {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]},
    ),
    "another order of items with the same name": (
        [{"name": "a", "value": 2}, {"name": "a", "value": 1}],
        [{"name": "a", "value": 1}, {"name": "a", "value": 2}],
    ),
}


def test_node_port_0_is_covered_by_any_allocated_one() -> None:
    assert covers([{"port": 80, "nodePort": 30001}], [{"port": 80, "nodePort": 0}])


@pytest.mark.parametrize(("live", "desired"), NOT_COVERED.values(), ids=NOT_COVERED.keys())
def test_not_covered(live: Any, desired: Any) -> None:
    assert not covers(live, desired)


@given(WITH_EXCEPTIONS, WITH_EXCEPTIONS, TEXT)
def test_covering_is_an_equal_projection(first: dict[str, Any], second: dict[str, Any], name: str) -> None:
    """Both are used: one decides about a write, the other one says what it changed."""
    for one, other in ((first, second), (first | second, first), ({name: first}, {name: first | second})):
        for live, desired in ((one, other), ([one, second], [other, first]), ({"spec": one}, {"spec": other})):
            assert covers(live, desired) == (projection(live, desired) == desired)


@given(JSON)
def test_every_value_covers_itself(tree: Any) -> None:
    assert covers(tree, tree)


@given(OBJECTS, OBJECTS)
def test_fields_outside_the_intent_do_not_matter(desired: dict[str, Any], added: dict[str, Any]) -> None:
    assert covers(added | desired, desired)


@given(OBJECTS)
def test_digest_does_not_depend_on_the_order_of_fields(obj: dict[str, Any]) -> None:
    assert intent_digest(dict(reversed(obj.items()))) == intent_digest(obj)


@given(OBJECTS, TEXT, st.integers())
def test_every_change_changes_the_digest(obj: dict[str, Any], field: str, value: int) -> None:
    changed = obj | {field: [value, "changed"]}
    assert (intent_digest(changed) == intent_digest(obj)) == (changed == obj)


def test_digest_is_the_same_in_every_release() -> None:
    # A new digest would cause one needless write per child during an upgrade.
    assert intent_digest({"b": [1, "x"], "a": {"d": None, "c": 0.5}}) == "18308541a126393f"


def test_digest_ignores_node_ports() -> None:
    without: Object = {"spec": {"ports": [{"port": 80}]}}
    assert intent_digest({"spec": {"ports": [{"port": 80, "nodePort": 30001}]}}) == intent_digest(without)
    assert intent_digest({"spec": {"ports": [{"port": 81, "nodePort": 30001}]}}) != intent_digest(without)


def test_intent_annotation_is_the_digest_without_it() -> None:
    child: Object = {"kind": "Service", "metadata": {"name": "a", "annotations": {"own": "kept"}}}
    assert with_intent(child) == {
        "kind": "Service",
        "metadata": {"name": "a", "annotations": {"own": "kept", INTENT_ANNOTATION: intent_digest(child)}},
    }
    assert INTENT_ANNOTATION not in child["metadata"]["annotations"]


def test_intent_can_be_added_without_other_annotations() -> None:
    child: Object = {"metadata": {"name": "a"}}
    assert with_intent(child)["metadata"]["annotations"] == {INTENT_ANNOTATION: intent_digest(child)}


def workload(replicas: int | None = None, **spec: Any) -> Object:
    """A desired workload; without a number of pods if that is None."""
    count = {} if replicas is None else {"replicas": replicas}
    return {"metadata": {"name": "a"}, "spec": {**count, **spec}}


def test_digest_ignores_the_number_of_pods_of_the_workload_only() -> None:
    assert intent_digest(workload(3)) == intent_digest(workload(5)) == intent_digest(workload())
    assert intent_digest(workload(3, nested={"replicas": 1})) != intent_digest(workload(3, nested={"replicas": 2}))
    assert intent_digest({"data": {"replicas": "1"}}) != intent_digest({"data": {"replicas": "2"}})


def test_digest_of_release_0_1_0_is_unchanged() -> None:
    assert digest_v1(workload(3, paused=False)) == "91680194923c6cea"
    assert digest_v1(workload(3)) != digest_v1(workload(5))


RECORDED: dict[str, tuple[Object, bool]] = {
    "this release": (with_intent(workload(3)), True),
    "this release, with another number of pods": (with_intent(workload(5)), True),
    "another intent": (with_intent(workload(3, paused=True)), False),
    "release 0.1.0": ({"metadata": {"annotations": {INTENT_ANNOTATION: digest_v1(workload(3))}}}, True),
    "release 0.1.0, with another number of pods": (
        {"metadata": {"annotations": {INTENT_ANNOTATION: digest_v1(workload(5))}}},
        False,
    ),
    "none": ({"metadata": {}}, False),
}


@pytest.mark.parametrize(("live", "same"), RECORDED.values(), ids=RECORDED.keys())
def test_recorded_intent(live: Object, same: bool) -> None:
    found = with_recorded_intent(with_intent(workload(3)), live)
    assert (found is not None) == same
    if found is not None:
        assert found["metadata"]["annotations"] == live["metadata"]["annotations"]


def test_recorded_intent_keeps_other_annotations() -> None:
    child: Object = {"metadata": {"name": "a", "annotations": {"own": "kept"}}, "spec": {"replicas": 3}}
    live: Object = {"metadata": {"annotations": {INTENT_ANNOTATION: digest_v1(child)}}}
    found = with_recorded_intent(with_intent(child), live)
    assert found is not None
    assert found["metadata"]["annotations"] == {"own": "kept", INTENT_ANNOTATION: digest_v1(child)}


PAUSED: dict[str, tuple[Object, bool, bool]] = {
    "absent means false": ({}, False, True),
    "absent is not true": ({}, True, False),
    "true": ({"paused": True}, True, True),
    "true is not false": ({"paused": True}, False, False),
}


@pytest.mark.parametrize(("live", "paused", "expected"), PAUSED.values(), ids=PAUSED.keys())
def test_false_that_the_api_server_does_not_store(live: Object, paused: bool, expected: bool) -> None:
    assert covers({"spec": live}, {"spec": {"paused": paused}}) is expected


def test_false_of_another_field_must_be_stored() -> None:
    assert not covers({"spec": {}}, {"spec": {"enableServiceLinks": False}})
    assert not covers({"spec": {"template": {}}}, {"spec": {"template": {"paused": False}}})
