"""The least that a change does to the pods of a Memcached. Each row: old spec, new spec, effect, fields."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memcached_api.effects import ITEM_OPTIONS, Effect
from memcached_api.memcached.changes.effect import ChangeEffect, effect_of, resource_effect
from memcached_api.memcached.changes.fields import changed_fields, sections
from memcached_api.memcached.memory import default_limit
from memcached_api.memcached.types import MEMCACHED
from unit.builders import memcached
from unit.memcached.test_changes import SPECS, decoded

MI = 2**20
Spec = dict[str, Any]
SLOTS: Spec = {"image": "memcached:1", "identity": "Stable"}
WATCHED: Spec = {**SLOTS, "monitoring": {}, "agent": {"image": "agent:1"}}
WARM: Spec = {**SLOTS, "agent": {"image": "agent:1"}, "cache": {"warmRestart": True}}


def cache(spec: Spec, **settings: Any) -> Spec:
    """The spec with other settings of the cache."""
    return {**spec, "cache": {**spec.get("cache", {}), **settings}}


def resources(spec: Spec, limits: Spec | None = None, requests: Spec | None = None) -> Spec:
    """The spec with other compute resources of memcached."""
    return {**spec, "resources": {"limits": limits or {}, "requests": requests or {}}}


def agent(spec: Spec, **fields: Any) -> Spec:
    """The spec with other fields of the agent."""
    return {**spec, "agent": {**spec.get("agent", {}), **fields}}


def warm_up(spec: Spec, **fields: Any) -> Spec:
    """The spec with a warm gate."""
    return {**spec, "rollout": {"warmUp": fields}}


def disk(spec: Spec = SLOTS, memory: str = "256Mi", **fields: Any) -> Spec:
    """The spec with items on a disk."""
    return cache(spec, memory=memory, extstore={"size": "1Gi", **fields})


FULL: Spec = {"cpu": "1", "memory": "512Mi"}
GUARANTEED: Spec = agent(
    resources(WATCHED, {"cpu": "1"}, {"cpu": "1", "memory": "200Mi"}),
    resources={"limits": {"cpu": "1", "memory": "64Mi"}, "requests": {"cpu": "1", "memory": "64Mi"}},
)
WARM_GUARANTEED = cache(GUARANTEED, warmRestart=True, memory="122Mi")
MEMORY = ["spec.cache.memory"]
RESOURCES = ["spec.resources"]
CHANGES: list[tuple[Spec, Spec, Effect, list[str]]] = [
    (SLOTS, SLOTS, Effect.NOTHING, []),
    (SLOTS, {**SLOTS, "size": 3, "service": {"labels": {"a": "b"}}}, Effect.NOTHING, []),
    (SLOTS, cache(SLOTS, memory="64Mi", threads=4), Effect.NOTHING, []),
    # The agent.
    (WATCHED, agent(WATCHED, image="agent:2"), Effect.IN_PLACE, ["spec.agent.image"]),
    (WATCHED, warm_up(WATCHED), Effect.IN_PLACE, ["spec.rollout.warmUp"]),
    (warm_up(WATCHED), WATCHED, Effect.IN_PLACE, ["spec.rollout.warmUp"]),
    (warm_up(SLOTS), warm_up(SLOTS, hitRatio=60), Effect.IN_PLACE, ["spec.rollout.warmUp.hitRatio"]),
    (SLOTS, warm_up(SLOTS), Effect.REPLACE, ["spec.rollout.warmUp"]),
    (SLOTS, {**SLOTS, "monitoring": {}}, Effect.REPLACE, ["spec.monitoring.enabled"]),
    (WATCHED, SLOTS, Effect.REPLACE, ["spec.monitoring.enabled"]),
    # What has no effect of its own is not named.
    (
        {**WATCHED, "tls": {"secretName": "a"}},
        agent({**SLOTS, "tls": {"secretName": "a", "port": 11211}}, image="agent:2"),
        Effect.IN_PLACE,
        ["spec.agent.image"],
    ),
    # Items on a disk.
    (cache(SLOTS, memory="256Mi"), disk(), Effect.REPLACE, ["spec.cache.extstore"]),
    (disk(), cache(SLOTS, memory="256Mi"), Effect.REPLACE, ["spec.cache.extstore"]),
    (disk(), disk(size="1024Mi", volume="Claim", threads=8), Effect.NOTHING, []),
    (disk(), disk(size="2Gi"), Effect.REPLACE, ["spec.cache.extstore.size"]),
    (disk(), disk(volume="EmptyDir"), Effect.REPLACE, ["spec.cache.extstore.volume"]),
    (disk(), disk(storageClassName="a"), Effect.REPLACE, ["spec.cache.extstore.storageClassName"]),
    (disk(), disk(threads=4), Effect.REPLACE, ["spec.cache.extstore.threads"]),
    (disk(), disk(itemAge="0s"), Effect.IN_PLACE, ["spec.cache.extstore.itemAge"]),
    (disk(itemAge="0s"), disk(), Effect.IN_PLACE, ["spec.cache.extstore.itemAge"]),
    (disk(itemAge="60s"), disk(itemAge="1m"), Effect.NOTHING, []),
    (disk(), disk(memory="300Mi"), Effect.RESIZE, MEMORY),
    (disk(), disk(memory="200Mi"), Effect.REPLACE, MEMORY),
    # Requests and limits.
    (SLOTS, resources(SLOTS, requests={"cpu": "200m"}), Effect.RESIZE, RESOURCES),
    (resources(SLOTS, FULL), resources(SLOTS, {**FULL, "cpu": "2"}), Effect.RESIZE, RESOURCES),
    (SLOTS, resources(SLOTS, limits={"cpu": "1"}), Effect.RESIZE, RESOURCES),
    (resources(SLOTS, limits={"cpu": "1"}), SLOTS, Effect.REPLACE, RESOURCES),
    (SLOTS, resources(SLOTS, limits={"cpu": "100m"}), Effect.REPLACE, RESOURCES),  # the pod becomes Guaranteed
    (SLOTS, resources(SLOTS, limits={"cpu": "1", "ephemeral-storage": "1Gi"}), Effect.REPLACE, RESOURCES),
    (
        resources(SLOTS, requests={"ephemeral-storage": "1Gi"}),
        resources(SLOTS, requests={"ephemeral-storage": "2Gi"}),
        Effect.REPLACE,
        RESOURCES,
    ),
    (resources(SLOTS, FULL, FULL), resources(SLOTS, FULL, {**FULL, "cpu": "500m"}), Effect.REPLACE, RESOURCES),
    (
        resources(cache(SLOTS, memory="64Mi"), FULL, FULL),
        resources(cache(SLOTS, memory="64Mi"), {**FULL, "cpu": "2"}, {**FULL, "cpu": "2"}),
        Effect.RESIZE,
        RESOURCES,
    ),
    # The agent beside memcached has no CPU limit, so the pod is not Guaranteed before or after.
    (
        resources(cache(WATCHED, memory="64Mi"), FULL, FULL),
        resources(cache(WATCHED, memory="64Mi"), FULL, {**FULL, "cpu": "500m"}),
        Effect.RESIZE,
        RESOURCES,
    ),
    (WATCHED, agent(WATCHED, resources={"limits": {"memory": "64Mi"}}), Effect.RESIZE, ["spec.agent.resources"]),
    (WATCHED, agent(WATCHED, resources={"limits": {"cpu": "1"}}), Effect.RESIZE, ["spec.agent.resources"]),
    (SLOTS, agent(SLOTS, resources={"limits": {"memory": "64Mi"}}), Effect.NOTHING, []),
    # Memory of memcached.
    (WATCHED, cache(WATCHED, memory="256Mi"), Effect.RESIZE, MEMORY),
    (cache(WATCHED, memory="256Mi"), cache(WATCHED, memory="64Mi"), Effect.REPLACE, MEMORY),
    (SLOTS, cache(SLOTS, memory="256Mi"), Effect.REPLACE, MEMORY),
    (WARM, cache(WARM, memory="256Mi"), Effect.REPLACE, MEMORY),
    (cache(SLOTS, memory="64Mi"), cache(SLOTS, memory="64.9Mi"), Effect.NOTHING, []),
    (cache(SLOTS, memory="73Mi"), cache(SLOTS, memory="73.9Mi"), Effect.RESIZE, MEMORY),
    (
        resources(WATCHED, {"memory": "512Mi"}),
        resources(WATCHED, {"memory": "1Gi"}),
        Effect.RESIZE,
        ["spec.resources", "spec.cache.memory"],
    ),
    (resources(WATCHED, {"memory": "1Gi"}), resources(WATCHED, {"memory": "512Mi"}), Effect.REPLACE, MEMORY),
    # The derived limit exceeds the request, which was equal before. It matters if all other amounts are equal.
    (
        resources(WATCHED, {"cpu": "1"}, {"cpu": "1", "memory": "200Mi"}),
        cache(resources(WATCHED, {"cpu": "1"}, {"cpu": "1", "memory": "200Mi"}), memory="256Mi"),
        Effect.RESIZE,
        MEMORY,
    ),
    (GUARANTEED, cache(GUARANTEED, memory="256Mi"), Effect.REPLACE, MEMORY),
    (GUARANTEED, cache(GUARANTEED, memory="100Mi"), Effect.RESIZE, MEMORY),
    # Arguments.
    (WARM, {**WARM, "image": "memcached:2"}, Effect.RESTART, ["spec.image"]),
    (WATCHED, {**WATCHED, "image": "memcached:2"}, Effect.REPLACE, ["spec.image"]),
    (WATCHED, cache(WATCHED, threads=8), Effect.REPLACE, ["spec.cache.threads"]),
    *(
        (WARM, cache(WARM, **{name: value}), Effect.RESTART, [f"spec.cache.{name}"])
        for name, value in (("maxConnections", 1000), ("threads", 3), ("evictions", False), ("verbosity", 2))
    ),
    (WARM, cache(WARM, extraArgs=["-o track_sizes"]), Effect.RESTART, ["spec.cache.extraArgs"]),
    *(
        (cache(WARM, extraArgs=["-o modern"]), cache(WARM, extraArgs=[item]), Effect.REPLACE, ["spec.cache.extraArgs"])
        for item in ("--disable-cas", "--slab-growth-factor=2", "--slab-min-size=64")
    ),
    (
        cache(WARM, extraArgs=["--disable-cas"]),
        cache(WARM, extraArgs=["-o modern", "--disable-cas"]),
        Effect.RESTART,
        ["spec.cache.extraArgs"],
    ),
    (WARM, cache(WARM, maxItemSize="2Mi"), Effect.REPLACE, ["spec.cache.maxItemSize"]),
    # Warm restarts themselves.
    (WATCHED, cache(WATCHED, warmRestart=True), Effect.REPLACE, ["spec.cache.warmRestart"]),
    (cache(WATCHED, warmRestart=True), WATCHED, Effect.REPLACE, ["spec.cache.warmRestart"]),
    (
        WARM,
        {**cache(WARM, warmRestart=False), "image": "x:2"},
        Effect.REPLACE,
        ["spec.image", "spec.cache.warmRestart"],
    ),
    # The derived limit follows from them.
    *(
        (WARM_GUARANTEED, cache(WARM_GUARANTEED, **{name: value}), Effect.REPLACE, [f"spec.cache.{name}"])
        for name, value in (("maxConnections", 20_000), ("threads", 64), ("extraArgs", ["-o hashpower=24"]))
    ),
    # The strongest effect.
    (WARM, agent({**WARM, "image": "memcached:2"}, image="agent:2"), Effect.RESTART, ["spec.image"]),
    (WARM, {**WARM, "image": "memcached:2", "containerPort": 2000}, Effect.REPLACE, ["spec.containerPort"]),
    (WARM, {**WARM, "rollout": {"restartedAt": "2026-11-22T10:00:00Z"}}, Effect.REPLACE, ["spec.rollout.restartedAt"]),
    (WATCHED, agent(cache(WATCHED, memory="256Mi"), image="agent:2"), Effect.RESIZE, MEMORY),
    # Pooled.
    (
        {"image": "a", "monitoring": {}},
        {"image": "a", "monitoring": {}, "agent": {"image": "agent:2"}},
        Effect.REPLACE,
        ["spec.agent.image"],
    ),
    ({"image": "a"}, {"image": "a", "size": 3}, Effect.NOTHING, []),
]


@pytest.mark.parametrize(("old", "new", "effect", "fields"), CHANGES)
def test_update(old: Spec, new: Spec, effect: Effect, fields: list[str]) -> None:
    assert [MEMCACHED.validate(memcached(**each)) for each in (old, new)] == [[], []]
    assert effect_of(decoded(new), decoded(old))[:2] == (effect, fields)


@pytest.mark.parametrize(
    ("old", "new", "resizes"),
    [
        (WARM, cache(WARM, threads=3), False),
        (WARM, cache(WARM, maxConnections=20_000), True),
        (WARM, cache(WARM, extraArgs=["-o hashpower=17"]), False),
        (WARM, cache(WARM, extraArgs=["-o hashpower=24"]), True),
        (WARM, resources(cache(WARM, threads=3), requests={"cpu": "200m"}), True),
        # The derived limit stays the same, but memcached gets more memory.
        (cache(WATCHED, memory="64Mi"), cache(WATCHED, memory="65Mi"), True),
        (WATCHED, agent(WATCHED, image="agent:2"), False),
    ],
)
def test_update_that_also_resizes(old: Spec, new: Spec, *, resizes: bool) -> None:
    assert effect_of(decoded(new), decoded(old)).resizes == resizes


def test_derived_limit_of_a_small_cache_is_constant() -> None:
    assert default_limit(64 * MI) == default_limit(65 * MI)


def test_options_that_keep_no_items_are_accepted_ones() -> None:
    for item in (f"{ITEM_OPTIONS[0]}", f"{ITEM_OPTIONS[1]}=2", f"{ITEM_OPTIONS[2]}=64"):
        assert MEMCACHED.validate(memcached(**cache(WARM, extraArgs=[item]))) == []


def _warm(spec: Spec, *, warm: bool) -> Spec:
    return cache(spec, warmRestart=True) if warm and spec["identity"] == "Stable" else spec


WARM_SPECS = st.builds(_warm, SPECS, warm=st.booleans()).filter(lambda spec: not MEMCACHED.validate(memcached(**spec)))


@given(WARM_SPECS, WARM_SPECS)
def test_something_happens_if_a_field_replaces_the_pods_of_a_deployment(old: Spec, new: Spec) -> None:
    after, before = decoded(new), decoded(old)
    assume(after.identity == before.identity)
    found, names = effect_of(after, before), sections(changed_fields(after, before), after, before)
    assert (found.effect is Effect.NOTHING) == (not names)
    assert set(found.fields) <= set(names)
    assert bool(found.fields) == bool(names)
    assert found.resizes <= (resource_effect(after, before) is Effect.RESIZE or "spec.cache.memory" in found.fields)
    assert effect_of(before, before) == ChangeEffect(Effect.NOTHING, [])
