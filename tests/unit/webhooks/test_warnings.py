"""Warnings about a change. Each row: old spec, new spec, warnings.

tests/unit/memcached/test_effects.py tests which changes have which effect.
"""

from typing import Any

import pytest

from memcached_api.images import Images
from memcached_webhooks.kinds.memcached import warnings
from memcached_webhooks.warnings import MAX_KEPT_LENGTH

from .reviews import DEFAULT, memcached

REPLACES = "this change replaces 1 pod; its cached items are lost"
REPLACES_3 = "this change replaces 3 pods, a few at a time; their cached items are lost"
SLOTS = {"size": 3, "identity": "Stable"}
ONE_AT_A_TIME = "this change replaces 3 pods, one at a time"
LOST = "their cached items are lost"
UPDATES_3 = "this change updates 3 pods in place, one at a time; cached items are kept"
RESIZES_3 = "this change resizes 3 pods in place, one at a time; cached items are kept"
RESTARTS_3 = "this change restarts memcached in 3 pods, one at a time; cached items are kept"
NO_RESIZE = "A cluster that cannot resize pods replaces them, and their cached items are lost"
WATCHED: dict[str, Any] = {**SLOTS, "monitoring": {}, "agent": {"image": "a:1"}}
WARM: dict[str, Any] = {**SLOTS, "agent": {"image": "a:1"}, "cache": {"warmRestart": True}}
WARM_UP: dict[str, Any] = {"rollout": {"warmUp": {}}}
SEVERAL: dict[str, Any] = {"rollout": {"maxUnavailable": "10%"}}
LIMITED = "spec.podDisruptionBudget.maxUnavailable limits spec.rollout.maxUnavailable to {}; raise it as well"
PACES: list[tuple[dict[str, Any], str]] = [
    ({}, "at most 5 at a time"),
    ({"podDisruptionBudget": {"enabled": False}}, "at most 5 at a time"),
    ({"podDisruptionBudget": {"maxUnavailable": 2}}, "at most 2 at a time"),
    ({"podDisruptionBudget": {}}, "one at a time"),
    ({"rollout": {"maxUnavailable": 3, "warmUp": {}}}, "at most 3 at a time, including pods that are not warm yet"),
]
CLIENTS = (
    "Clients must use all addresses of the Service's name. To give each pod a name, create another Memcached with "
    "spec.identity Stable"
)
MOVES = "with consistent hashing about {} % of the keys move"
TOO_MANY_THREADS = (
    "spec.cache.threads of 5 is more than twice the CPU limit: threads that wait for a CPU make memcached slower"
)
SLOW = (
    "spec.monitoring.podMonitor.interval of {} is more than 2m: Prometheus drops a sample after 5m, so alerts may not "
    "fire"
)
PROBLEMS = (
    "memcached {} has known problems, which 1.6.45 corrects: a client that lists all keys and stops reading can damage "
    "memory; 2 more"
)
HEADERS = (
    "spec.cache.memory of 1Gi is little for spec.cache.extstore.size: each item on the disk has a header in memory, so "
    "only items of {}Ki or more on average can fill the disk"
)
LARGE_ITEMS = (
    "a get of many large items on the disk can fail with spec.cache.memory below 256Mi, because each of them needs "
    "memory until it is sent"
)
LATE = (
    "a CPU limit can cost items: a memcached that waits for CPU evicts items before it writes them to the disk; remove "
    "spec.resources.limits.cpu, or set spec.cache.extstore.itemAge to 0s"
)
DISK_PROBLEM = (
    "memcached 1.6.40 has known problems, which 1.6.45 corrects: a cache with items on a disk loses items in use when "
    "it compacts its file; 3 more"
)
NOT_FIXED = "has no fixed version; new pods may run a different one"
LONG = "memcached:" + "t" * 100


def resources(**limits: Any) -> dict[str, Any]:
    return {"resources": {"limits": limits}}


def scraped(interval: str) -> dict[str, Any]:
    return {"agent": {"image": "a:1"}, "monitoring": {"podMonitor": {"interval": interval}}}


def cache(**settings: Any) -> dict[str, Any]:
    return {"cache": settings}


def disk(size: str = "50Gi", memory: str = "1Gi", **fields: Any) -> dict[str, Any]:
    """A spec with items on a disk, and these other fields of `cache.extstore`."""
    return {**SLOTS, "agent": {"image": "a:1"}, "cache": {"memory": memory, "extstore": {"size": size, **fields}}}


def changed(old: dict[str, Any], change: dict[str, Any], *expected: str) -> tuple[Any, Any, list[str]]:
    """A row with the old spec, and with some fields of it changed."""
    return old, {**old, **change}, [*expected]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, {}, []),
        (None, {"image": "memcached"}, [f"spec.image memcached {NOT_FIXED}"]),
        (None, {"image": "memcached:latest"}, [f"spec.image memcached:latest {NOT_FIXED}"]),
        ({"size": 3}, {"size": 3}, []),
        ({"size": 3}, {"size": 4}, ["3 → 4 pods: with consistent hashing about 25 % of the keys move"]),
        ({"size": 3}, {"size": 2}, [f"3 → 2 pods: {MOVES.format(33)}; the cached items of the deleted pods are lost"]),
        ({}, {"containerPort": 2000}, [f"spec.containerPort: {REPLACES}"]),
        ({"size": 3}, {"size": 3, "containerPort": 2000}, [f"spec.containerPort: {REPLACES_3}"]),
        *(
            changed(
                *({"size": 3}, {"containerPort": 2000, "rollout": rollout}),
                f"spec.containerPort: {REPLACES_3.replace('a few', pace)}",
            )
            for rollout, pace in [
                ({"maxUnavailable": 0, "maxSurge": 1}, "one"),
                ({"maxUnavailable": 1, "maxSurge": "0%"}, "one"),
                ({"maxUnavailable": 1, "maxSurge": 1}, "a few"),
                ({"maxUnavailable": 0}, "a few"),
            ]
        ),
        (cache(), cache(threads=5, evictions=False), [f"spec.cache.threads, spec.cache.evictions: {REPLACES}"]),
        (
            cache(),
            cache(threads=5, evictions=False, verbosity=0),
            [f"spec.cache.threads and 2 more fields: {REPLACES}"],
        ),
        # Slots.
        ({**SLOTS, "containerPort": 2000}, SLOTS, [f"spec.containerPort: {ONE_AT_A_TIME}; {LOST}"]),
        changed(SLOTS, WARM_UP, f"spec.rollout.warmUp: {ONE_AT_A_TIME}, each after the previous one is warm; {LOST}"),
        *(
            changed(
                *({**SLOTS, **SEVERAL, **budget, "size": 50}, {"containerPort": 2000}),
                f"spec.containerPort: this change replaces 50 pods, {pace}; {LOST}",
            )
            for budget, pace in PACES
        ),
        changed(
            *({**SLOTS, "size": 4}, {"size": 2}),
            f"4 → 2 pods: {MOVES.format(50)}; slots 2 to 3 and the cached items there are deleted",
        ),
        (None, {"size": 2}, [CLIENTS]),
        (None, {**SLOTS, **SEVERAL, "size": 50}, []),
        (None, {**SLOTS, **SEVERAL, "size": 50, "podDisruptionBudget": {}}, [LIMITED.format(1)]),
        (None, {"size": 50, **SEVERAL, "podDisruptionBudget": {}, "identity": "Pooled"}, [CLIENTS]),
        changed(
            SLOTS, {"rollout": {"maxUnavailable": 3}, "podDisruptionBudget": {"maxUnavailable": 2}}, LIMITED.format(2)
        ),
        # What keeps the items.
        changed(WATCHED, {"agent": {"image": "a:2"}}, f"spec.agent.image: {UPDATES_3}"),
        changed(
            *({**WATCHED, "size": 1}, {"agent": {"image": "a:2"}}),
            "spec.agent.image: this change updates 1 pod in place; cached items are kept",
        ),
        changed(
            *(WATCHED, WARM_UP),
            "spec.rollout.warmUp: this change updates 3 pods in place, one at a time, each after the previous one "
            "is warm; cached items are kept",
        ),
        changed(WATCHED, cache(memory="256Mi"), f"spec.cache.memory: {RESIZES_3}. {NO_RESIZE}"),
        changed(
            *({**SLOTS, "size": 1, **resources(memory="128Mi"), **cache(memory="64Mi")}, resources(memory="256Mi")),
            "spec.resources: this change resizes 1 pod in place; cached items are kept. A cluster that cannot "
            "resize pods replaces it, and its cached items are lost",
        ),
        changed({**WARM, "image": "memcached:1"}, {"image": "memcached:2"}, f"spec.image: {RESTARTS_3}"),
        changed(
            *({**WARM, "image": "memcached:2"}, {"image": "memcached:1"}),
            "spec.image: this change restarts memcached in 3 pods, one at a time; cached items are lost, "
            "because an older release cannot read them",
        ),
        changed(
            *({**WARM, "image": "memcached:1.6"}, {"image": "memcached:1.6.45"}),
            f"spec.image: {RESTARTS_3}, unless the release is older",
        ),
        (None, {"image": "memcached:1.6.41"}, [f"spec.image: {PROBLEMS.format('1.6.41')}"]),
        ({"image": "memcached:1.6.38"}, {"image": "memcached:1.6.38"}, [f"spec.image: {PROBLEMS.format('1.6.38')}"]),
        changed(
            *(WARM, cache(warmRestart=True, maxConnections=20_000)),
            f"spec.cache.maxConnections: {RESTARTS_3}. {NO_RESIZE}",
        ),
        ({"size": 300}, {"size": 301}, [f"300 → 301 pods: {MOVES.format(1)}"]),
        (None, scraped("2m"), []),
        (None, scraped("4m59s"), [SLOW.format("4m59s")]),
        (scraped("2m1s"), {**scraped("2m1s"), "inheritedMetadata": {}}, []),
        (scraped("2m"), scraped("1h"), [SLOW.format("1h")]),
        (None, cache(threads=5), []),
        (None, {**cache(threads=4), **resources(cpu=2)}, []),
        (None, {**cache(threads=5), **resources(cpu=2)}, [TOO_MANY_THREADS]),
        ({**cache(threads=5), **resources(cpu=2)}, {"size": 1, **cache(threads=5), **resources(cpu="2000m")}, []),
        (
            {**cache(threads=5), **resources(cpu=3)},
            {**cache(threads=5), **resources(cpu=2)},
            [f"spec.resources: {REPLACES}", TOO_MANY_THREADS],
        ),
        (
            {"image": "memcached:1"},
            {"image": "memcached"},
            [f"spec.image: {REPLACES}", f"spec.image memcached {NOT_FIXED}"],
        ),
        ({"image": DEFAULT}, {"image": DEFAULT}, []),
        ({"image": "other/memcached:1"}, {"image": "other/memcached:1"}, []),
        (
            {"image": "docker.io/library/memcached:1.6.46"},
            {"image": "docker.io/library/memcached:1.6.46"},
            [f"spec.image docker.io/library/memcached:1.6.46 is kept; this operator's default is {DEFAULT}"],
        ),
        # Items on a disk.
        (None, disk(), []),
        (None, disk("100Gi"), [HEADERS.format(19)]),
        (disk("100Gi"), {**disk("100Gi"), "size": 3, "rollout": {"maxUnavailable": 1}}, []),
        (disk(), disk("100Gi"), [f"spec.cache.extstore.size: {ONE_AT_A_TIME}; {LOST}", HEADERS.format(19)]),
        changed(*({**disk(), "cache": {"memory": "1Gi"}}, disk()), f"spec.cache.extstore: {ONE_AT_A_TIME}; {LOST}"),
        (None, {**disk(), "cache": {**disk("1Gi", "255Mi")["cache"], "maxItemSize": "2Mi"}}, [LARGE_ITEMS]),
        (None, {**disk(), "cache": {**disk("1Gi", "256Mi")["cache"], "maxItemSize": "2Mi"}}, []),
        (None, {**disk("1Gi", "255Mi")}, []),
        (None, {**disk(), **resources(cpu=8)}, [LATE]),
        (None, {**disk(itemAge="30s"), **resources(cpu=8)}, [LATE]),
        (None, {**disk(itemAge="0s"), **resources(cpu=8)}, []),
        (None, {**disk(), "image": "memcached:1.6.40"}, [f"spec.image: {DISK_PROBLEM}"]),
        ({"size": "x"}, {"image": "memcached"}, [f"spec.image memcached {NOT_FIXED}"]),
    ],
)
def test_warnings(old: Any, new: Any, expected: list[str]):
    assert warnings(memcached(new), None if old is None else memcached(old), Images(DEFAULT)) == expected


@pytest.mark.parametrize(
    "new",
    [
        {
            "resources": {"limits": {"memory": "2Gi"}},
            "agent": {"image": "a:1", "resources": {"limits": {"memory": "1Gi"}}},
        },
        {"cache": {"warmRestart": True, "maxConnections": 20_000, "extraArgs": ["--disable-watch"]}},
    ],
)
def test_longest_warning_is_not_truncated_by_the_api_server(new: dict[str, Any]):
    old: dict[str, Any] = {**(WARM if "cache" in new else WATCHED), **WARM_UP, "size": 1000}
    (warning,) = warnings(memcached({**old, **new}), memcached(old), Images(DEFAULT))
    assert warning.endswith(NO_RESIZE)
    assert len(warning) <= MAX_KEPT_LENGTH


def test_long_images_are_truncated():
    spec = memcached({"image": LONG})
    (warning,) = warnings(spec, spec, Images("memcached:1"))
    assert warning == f"spec.image {LONG[:79]}… is kept; this operator's default is memcached:1"
