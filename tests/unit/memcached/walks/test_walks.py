"""Random walks: users, nodes, other clients and leaders do anything; the update ends, and keeps its promises."""

import os
import random
from datetime import timedelta
from typing import Any, Final

import pytest

from memcached_api.annotations import ARGS_ANNOTATION, MEMORY_ANNOTATION, ORIGIN_ANNOTATION, RECORD_ANNOTATION
from memcached_operator.kube.resource import Object
from memcached_operator.world.snapshot import Resize
from support.kubelet import AGENT, MEMCACHED
from unit.memcached.walks.cluster import CR, SET, Cluster
from unit.memcached.walks.invariants import Checks

FIRST_SEED: Final = int(os.environ.get("WALKS_SEED", "41"))
WALKS: Final = int(os.environ.get("WALKS", "20"))
"""The walks of one run. More, for example overnight: `WALKS=10000 WALKS_SEED=50000`."""
UNFAIR: Final = 40
SETTLED: Final = 2700.0
"""Events of the unfair part, and seconds of the fair one: the longest back-off is 30 minutes."""
LIMIT: Final[Object] = {"limits": {"cpu": "1"}}
MISSING: Final = ("memcached:9", "agent:9")
FORGED: Final = (
    "",
    "x",
    "{}",
    "[]",
    '{"revision":"a","failed":"x"}',
    '{"revision":"a","restarts":{"agent":{"id":"simulated://agent-0"}}}',
)
EVENTS: Final = (
    "spec",
    "spec",
    "hasty",
    "hasty",
    "room",
    "room",
    "image",
    "leader",
    "quota",
    "pod",
    "pod",
    "pod",
    "pod",
)
NAMES: Final = (RECORD_ANNOTATION, ORIGIN_ANNOTATION, ARGS_ANNOTATION, MEMORY_ANNOTATION)


def first_spec(chance: random.Random) -> Object:
    """A cache with everything that an update in place can change."""
    warm = chance.random() < 0.7
    return {
        "size": chance.choice((1, 2, 3, 3, 4)),
        "identity": "Stable",
        "image": "memcached:1",
        "agent": {"image": "agent:1", "resources": {"limits": {"memory": "48Mi"}}},
        "monitoring": {},
        "cache": {"memory": "64Mi", "warmRestart": warm, "maxConnections": 1024},
        "resources": {"requests": {"cpu": "10m"}},
        "rollout": {"maxUnavailable": 1},
        "podDisruptionBudget": {"maxUnavailable": 4},
    }


def next_spec(chance: random.Random, spec: Object, images: tuple[str, ...] = ("1", "2", "9")) -> Object:
    """The spec with a few other values."""
    changes: list[dict[str, Any]] = [
        {"image": f"memcached:{chance.choice(images)}"},
        {"agent": {**spec["agent"], "image": f"agent:{chance.choice(images)}"}},
        {"agent": {**spec["agent"], "resources": {"limits": {"memory": chance.choice(("48Mi", "96Mi"))}}}},
        {"cache": {**spec["cache"], "maxConnections": chance.choice((512, 1024, 8192))}},
        {"cache": {**spec["cache"], "memory": chance.choice(("64Mi", "128Mi"))}},
        {"resources": {"requests": {"cpu": chance.choice(("10m", "20m"))}, **chance.choice(({}, LIMIT))}},
        {"size": chance.choice((1, 2, 3, 3, 4))},
        {"rollout": {**spec["rollout"], "maxUnavailable": chance.choice((1, 1, 2, 3))}},
        {"rollout": {**spec["rollout"], "paused": chance.random() < 0.5}},
        {"rollout": restarted(chance, spec)["rollout"]},
    ]
    for change in chance.sample(changes, chance.choice((1, 1, 2, 3))):
        spec = {**spec, **change}
    return spec


def restarted(chance: random.Random, spec: Object) -> Object:
    """The spec with which all pods are replaced: the time is another one than before."""
    minute = chance.randint(10, 59)
    at = f"2030-01-01T00:{minute}:00Z"
    at = "2030-01-01T00:09:00Z" if spec["rollout"].get("restartedAt") == at else at
    return {**spec, "rollout": {**spec["rollout"], "restartedAt": at}}


def disturb(chance: random.Random, cluster: Cluster) -> None:
    """One event of the unfair part. A hasty user replaces all pods while some are being updated in place."""
    match chance.choice(EVENTS):
        case "spec":
            cluster.change_spec(next_spec(chance, cluster.objects[CR]["spec"]))
        case "hasty":
            spec = cluster.objects[CR]["spec"]
            cluster.change_spec({**spec, "image": f"memcached:{chance.randint(1, 2)}"})
            cluster.run(chance.uniform(0, 40))
            cluster.change_spec(restarted(chance, cluster.objects[CR]["spec"]))
        case "room":
            cluster.nodes.room = chance.choice(("", "Deferred", "Infeasible", "Error", "never"))
            for name in cluster.kubelets:
                cluster.wake(name)
        case "image":
            cluster.nodes.missing = {*MISSING, chance.choice(("memcached:1", "memcached:2", "agent:1", "agent:2"))}
        case "leader":
            cluster.elect()
        case "quota":
            cluster.quota = not cluster.quota
            cluster.wake(SET)
        case _:
            for name in chance.sample(list(cluster.kubelets), min(1, len(cluster.kubelets))):
                disturb_pod(chance, cluster, name)


def disturb_pod(chance: random.Random, cluster: Cluster, name: str) -> None:
    """One event of the unfair part, of a pod."""
    kubelet = cluster.kubelets[name]
    match chance.choice(("deleted", "evicted", "crashed", "rebooted", "down", "forged")):
        case "deleted":
            cluster.delete(name)
        case "evicted":
            status = {**kubelet.pod.get("status", {"conditions": []}), "phase": "Failed"}
            cluster.put(name, {**kubelet.pod, "status": status})
        case "crashed":
            cluster.put(name, kubelet.ended(cluster.now, {MEMCACHED}, chance.choice((0, 1, 137))))
        case "rebooted":
            cluster.put(name, kubelet.ended(cluster.now, {MEMCACHED, AGENT}, 137))
        case "down":
            kubelet.down = cluster.now + timedelta(seconds=chance.choice((30, 90, 300)))
        case _:
            forge(chance, cluster, name)


def forge(chance: random.Random, cluster: Cluster, name: str) -> None:
    """Another client changes an annotation or the label of a pod, or its requests."""
    cluster.kubelets[name].tampered = True
    pod = cluster.objects[name]
    meta, field = pod["metadata"], chance.choice((*NAMES, "label"))
    if field == "label":
        labels = {**meta["labels"], "controller-revision-hash": chance.choice(("", "cache-x"))}
        cluster.put(name, {**pod, "metadata": {**meta, "labels": labels}})
        return
    annotations = {key: text for key, text in meta["annotations"].items() if key != field}
    annotations |= {} if chance.random() < 0.3 else {field: chance.choice(FORGED)}
    cluster.put(name, {**pod, "metadata": {**meta, "annotations": annotations}})


def make_fair(chance: random.Random, cluster: Cluster, *, for_all: bool) -> None:
    """Nothing disturbs any more. `for_all`: and what the last spec asks for exists."""
    cluster.faulty, cluster.quota = False, False
    if for_all:
        cluster.nodes.room, cluster.nodes.missing = "", set(MISSING)
    for name, kubelet in cluster.kubelets.items():
        kubelet.down = None
        cluster.wake(name)
    if not for_all:
        return
    spec = next_spec(chance, cluster.objects[CR]["spec"], ("1", "2"))
    images = {"image": chance.choice(("memcached:1", "memcached:2"))}
    agent = {"agent": {**spec["agent"], "image": chance.choice(("agent:1", "agent:2"))}}
    cluster.change_spec({**spec, **images, **agent, "rollout": {**spec["rollout"], "paused": False}})


def needs_user(cluster: Cluster) -> bool:
    """Whether nothing is tried again: an image, a resize that cannot lower a memory limit, a forged annotation."""
    message = cluster.status()["Degraded"]["message"]
    kept = "uses its previous resources again" in message and cluster.resize is Resize.RAISE
    forged = any(kubelet.tampered for kubelet in cluster.kubelets.values()) and "lose its items, delete it" in message
    return kept or forged or "uses its previous image again" in message


def walk(seed: int) -> None:
    """One walk."""
    chance, checks = random.Random(seed), Checks()  # noqa: S311 - no secret
    cluster = Cluster(
        chance, first_spec(chance), chance.choice((Resize.ANY, Resize.ANY, Resize.RAISE, Resize.NONE)), checks.step
    )
    checks.cluster = cluster
    cluster.run(60)
    cluster.nodes.missing = set(MISSING)
    cluster.faulty = chance.random() < 0.7
    for _ in range(chance.randint(3, UNFAIR)):
        disturb(chance, cluster)
        cluster.run(chance.choice((0.2, 1, 3, 10, 30, 120, 700)))
    make_fair(chance, cluster, for_all=False)
    cluster.run(SETTLED)
    checks.end(complete=False)
    make_fair(chance, cluster, for_all=True)
    cluster.run(SETTLED)
    if needs_user(cluster):
        cluster.change_spec(restarted(chance, cluster.objects[CR]["spec"]))
        cluster.run(SETTLED)
    checks.end(complete=True)
    writes = cluster.writes
    cluster.run(SETTLED)
    assert cluster.writes == writes, "a complete update goes on writing"


FOUND: Final = (50022, 50171, 360228, 368996, 369289, 373986, 413882)
"""Walks that failed once: a forged argument that no restart confirms, a second slot after a lost reply, and resizes
that nothing tried again: without a record or its amounts, of a container that was never created, and back to amounts
that the node had refused before."""


@pytest.mark.parametrize("seed", [*range(FIRST_SEED, FIRST_SEED + WALKS), *FOUND])
def test_walk(seed: int) -> None:
    """The number of the test is the seed, which repeats the walk."""
    walk(seed)
