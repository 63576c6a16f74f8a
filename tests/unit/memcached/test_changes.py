"""A field that is declared to replace the pods does, and no other field does."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memcached_api.effects import Effect
from memcached_api.images import Images
from memcached_api.memcached.changes.effect import effect_of
from memcached_api.memcached.changes.fields import changed_fields, values
from memcached_api.memcached.types import MEMCACHED, MemcachedSpec, decode_spec
from memcached_api.quantity import parse_quantity
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.desired.deployment import deployment
from unit.builders import memcached

MI = 2**20
Specs = st.SearchStrategy[dict[str, Any]]
CPU: st.SearchStrategy[Any] = st.sampled_from(["500m", "0.5", 1, "2"])
MEMORY: st.SearchStrategy[Any] = st.sampled_from(["512Mi", 2**29, "1Gi", "1024Mi"])
AMOUNTS: Specs = st.fixed_dictionaries({}, optional={"cpu": CPU, "memory": MEMORY})
CACHES: Specs = st.fixed_dictionaries(
    {},
    optional={
        "memory": st.sampled_from(["64Mi", 64 * MI, "65536Ki", "64.5Mi", "65Mi", "100Mi", "100.3Mi"]),
        "maxItemSize": st.sampled_from(["1Mi", MI, "512Ki", "8Mi"]),
        "maxConnections": st.sampled_from([1024, 1023, 2000]),
        "threads": st.sampled_from([4, 1, 8]),
        "evictions": st.booleans(),
        "verbosity": st.integers(0, 2),
        "extraArgs": st.sampled_from([[], ["-o modern"], ["--disable-cas", "-o modern"], ["-o hashpower=20"]]),
    },
)
LABELS: Specs = st.sampled_from([{}, {"a": "b"}, {"a": "c"}])
METADATA: Specs = st.fixed_dictionaries({}, optional={"labels": LABELS, "annotations": LABELS})
CONSTRAINT = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
AFFINITY = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}
PODS: Specs = st.fixed_dictionaries(
    {},
    optional={
        "nodeSelector": LABELS,
        "tolerations": st.sampled_from([[], [{"key": "a"}], [{"key": "a", "operator": "Exists"}]]),
        "affinity": st.sampled_from([{}, AFFINITY]),
        "topologySpreadConstraints": st.sampled_from([[], [CONSTRAINT], [{**CONSTRAINT, "labelSelector": {}}]]),
        "priorityClassName": st.sampled_from(["", "high"]),
        "runtimeClassName": st.sampled_from(["", "gvisor"]),
        "serviceAccountName": st.sampled_from(["", "default", "own"]),
        "terminationGracePeriodSeconds": st.sampled_from([30, 60]),
        "securityContext": st.sampled_from([{}, {"runAsUser": 1001, "runAsGroup": 1001}, {"runAsNonRoot": True}]),
    },
)
RESTARTS: Specs = st.fixed_dictionaries(
    {},
    optional={
        "paused": st.booleans(),
        "restartedAt": st.sampled_from(["2026-11-22T10:00:00Z", "2026-11-22T11:00:00Z"]),
    },
)
POOLED_ROLLOUTS: Specs = st.fixed_dictionaries({}, optional={"maxUnavailable": st.sampled_from([1, "25%"])})
STABLE_ROLLOUTS: Specs = st.fixed_dictionaries(
    {},
    optional={
        "maxUnavailable": st.sampled_from([1, 5, "25%"]),
        "warmUp": st.fixed_dictionaries(
            {},
            optional={
                "hitRatio": st.sampled_from([80, 60]),
                "timeout": st.sampled_from(["15m", "900s", "1h"]),
                "minRequests": st.sampled_from([100, 0]),
            },
        ),
    },
)
AGENTS: Specs = st.fixed_dictionaries(
    {"image": st.sampled_from(["agent:1", "agent:2"])},
    optional={"resources": st.fixed_dictionaries({}, optional={"limits": AMOUNTS, "requests": AMOUNTS})},
)
ON: Specs = st.fixed_dictionaries({}, optional={"enabled": st.booleans()})
MONITORING: Specs = st.fixed_dictionaries({}, optional={"enabled": st.booleans(), "tls": ON, "insight": ON})
TLS: Specs = st.builds(
    lambda *parts: {name: value for part in parts for name, value in part.items()},
    st.fixed_dictionaries({"secretName": st.sampled_from(["a", "b"])}, optional={"minVersion": st.just("1.3")}),
    st.sampled_from([{}, {"clientAuth": "None"}, {"clientAuth": "Require"}, {"clientAuth": "Request"}])
    | st.sampled_from([{"clientAuth": "Require", "clientCASecretName": name} for name in ("a", "b")]),
    st.sampled_from([{}, {"port": 11211}, {"port": 12001}, {"port": 12001, "plaintext": "Enabled"}]),
)
ALL: Specs = st.fixed_dictionaries(
    {"image": st.sampled_from(["memcached:1", "memcached:2"])},
    optional={
        "size": st.integers(1, 3),
        "containerPort": st.sampled_from([11211, 12000]),
        "imagePullPolicy": st.sampled_from(["Always", "Never"]),
        "imagePullSecrets": st.sampled_from([[], [{"name": "a"}], [{"name": "a"}, {"name": "b"}]]),
        "resources": st.fixed_dictionaries({}, optional={"limits": AMOUNTS, "requests": AMOUNTS}),
        "cache": CACHES,
        "podTemplate": st.fixed_dictionaries({}, optional={"metadata": METADATA, "spec": PODS}),
        "monitoring": MONITORING,
        "tls": TLS,
        "auth": st.fixed_dictionaries({"secretName": st.sampled_from(["a", "b"])}),
        "agent": AGENTS,
        "inheritedMetadata": METADATA,
    },
)
IDENTITIES: Specs = st.fixed_dictionaries({"identity": st.just("Pooled"), "rollout": POOLED_ROLLOUTS}) | (
    st.fixed_dictionaries({"identity": st.just("Stable"), "rollout": STABLE_ROLLOUTS})
)


DISKS: st.SearchStrategy[dict[str, Any] | None] = st.none() | st.fixed_dictionaries(
    {"size": st.sampled_from(["1Gi", "1024Mi", "2Gi"])},
    optional={
        "volume": st.sampled_from(["Claim", "EmptyDir"]),
        "storageClassName": st.just("local"),
        "itemAge": st.sampled_from(["0s", "60s", "1m"]),
        "threads": st.sampled_from([8, 4]),
    },
)


def _combined(
    spec: dict[str, Any], identity: dict[str, Any], restart: dict[str, Any], disk: dict[str, Any] | None
) -> dict[str, Any]:
    combined = {**spec, **identity, "rollout": {**identity["rollout"], **restart}}
    if disk is None or identity["identity"] != "Stable":
        return combined
    others = {name: value for name, value in spec.get("cache", {}).items() if name != "evictions"}
    return {**combined, "cache": {**others, "memory": "256Mi", "extstore": disk}}


SPECS = st.builds(_combined, ALL, IDENTITIES, RESTARTS, DISKS).filter(
    lambda spec: not MEMCACHED.validate(memcached(**spec))
)


def template(spec: dict[str, Any]) -> Object:
    """The pod template that the operator builds, with amounts as numbers: Kubernetes compares these."""
    cr = memcached(**spec)
    found = deployment(cr, decode_spec(cr), Images(spec["image"], agent_of(spec)))["spec"]["template"]
    containers = [{**each, "resources": amounts(each["resources"])} for each in found["spec"]["containers"]]
    return {**found, "spec": {**found["spec"], "containers": containers}}


def agent_of(spec: dict[str, Any]) -> str:
    """The image of the agent: the one of the spec, or that which the controller chooses."""
    return spec.get("agent", {}).get("image", "agent:0")


def amounts(resources: Object) -> Object:
    """Requests and limits as numbers."""
    return {part: {name: parse_quantity(text) for name, text in given.items()} for part, given in resources.items()}


def declared(spec: dict[str, Any]) -> dict[str, object]:
    """The declared values for a spec."""
    return values(decoded(spec))


def decoded(spec: dict[str, Any]) -> MemcachedSpec:
    """The spec as the operator reads it."""
    return decode_spec(memcached(**spec))


def with_field_of(spec: dict[str, Any], other: dict[str, Any], field: str) -> dict[str, Any]:
    """The spec with one field of another one, such as `image` or `cache.threads`; the field may be absent there."""
    name, _, rest = field.partition(".")
    if rest:
        return {**spec, name: with_field_of(spec.get(name, {}), other.get(name, {}), rest)}
    return {key: value for key, value in spec.items() if key != name} | ({name: other[name]} if name in other else {})


FIELDS = [field.removeprefix("spec.") for field in declared({"image": "a"})]


def changes(spec: dict[str, Any], other: dict[str, Any], *more: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """For each declared field, and `more`: a valid spec that differs only in this field, which is that of another spec.

    To make a spec takes much longer than to check a change.
    """
    for field in (*FIELDS, *more):
        changed = with_field_of(spec, other, field)
        if changed != spec and "image" in changed and not MEMCACHED.validate(memcached(**changed)):
            yield field, changed


NUMBER = {"identity": "Stable", "resources": {"requests": {"memory": 2**29}}}
TEXT = {"resources": {"limits": {"memory": "512Mi"}, "requests": {"memory": "512Mi"}}}


@given(SPECS, SPECS)
@example({**NUMBER, "image": "memcached:1"}, TEXT)
def test_change_of_one_field_changes_the_template_if_it_is_declared(
    spec: dict[str, Any], other: dict[str, Any]
) -> None:
    old, before = decoded(spec), template(spec)
    for field, changed in changes(spec, other, "size", "rollout.paused", "inheritedMetadata"):
        new, differs = decoded(changed), template(changed) != before
        assert bool(changed_fields(new, old)) == differs, field
        assert (effect_of(new, old).effect is not Effect.NOTHING) == differs, field


@pytest.mark.parametrize(
    ("field", "default", "other"), [("terminationGracePeriodSeconds", 30, 60), ("serviceAccountName", "default", "own")]
)
def test_default_of_kubernetes_is_no_change(field: str, default: Any, other: Any) -> None:
    absent, set_, changed = (
        decoded({"podTemplate": {"spec": given}}) for given in ({}, {field: default}, {field: other})
    )
    path = f"spec.podTemplate.spec.{field}"
    assert (changed_fields(set_, absent), changed_fields(absent, set_)) == ([], [])
    assert (changed_fields(changed, set_), changed_fields(changed, absent)) == ([path], [path])


@given(SPECS, st.integers(1, 9))
def test_other_fields_do_not_change_the_template(spec: dict[str, Any], size: int) -> None:
    assert template({**spec, "size": size}) == template(spec)
