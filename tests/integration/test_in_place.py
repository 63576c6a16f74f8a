"""Updates in place with the patches that a real API server gets, which also checks them. The kubelets are a model."""

import random
from itertools import combinations
from typing import Final

import pytest

from integration.confined import merged
from integration.control_plane import ControlPlane, until, without_controllers
from integration.pods import NODES
from memcached_operator.engine.discovery import discover_resize
from memcached_operator.engine.kind import PodStep
from memcached_operator.engine.writes.pod_steps import PodSteps
from memcached_operator.engine.writes.result import Result
from memcached_operator.kube.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiClient
from memcached_operator.kube.resource import PODS, Key, Object
from memcached_operator.world.snapshot import Resize
from support.kubernetes import NODE_CAPACITY, RESIZE
from support.stores import whole_store
from unit.builders import pod_of
from unit.memcached.walks.cluster import Cluster
from unit.memcached.walks.invariants import Checks
from unit.memcached.walks.test_remedies import MINUTE, spec
from unit.memcached.walks.test_stuck_pods import HEALTHY

pytestmark = pytest.mark.server

AMOUNTS: Final[Object] = {"requests": {"cpu": "1m", "memory": "1Mi"}, "limits": {"memory": "8Mi"}}
PROXY: Final[Object] = {"name": "m-proxy", "image": "proxy:1", "resources": AMOUNTS}
SIDECAR: Final[Object] = {**PROXY, "name": "a-sidecar", "restartPolicy": "Always"}

COLD: Final[Object] = {"cache": {"warmRestart": False}}
WARM: Final[Object] = {"cache": {"warmRestart": True}}
PAUSED: Final[Object] = {"rollout": {"paused": True}}
KEPT: Final[dict[str, Object]] = {
    "agent.image": {"agent": {"image": "agent:2"}},
    "rollout.warmUp": {"rollout": {"warmUp": {"hitRatio": 50}}},
    "resources, requests": {"resources": {"requests": {"cpu": "20m", "memory": "150Mi"}}},
    "resources, limits": {"resources": {"limits": {"memory": "400Mi", "cpu": "1"}}},
    "agent.resources": {"agent": {"resources": {"requests": {"cpu": "15m"}, "limits": {"memory": "64Mi", "cpu": "1"}}}},
}
"""The changes of docs/warm.md that keep memcached running, with and without warm restarts."""
GROWN: Final[dict[str, Object]] = {**KEPT, "cache.memory": {"cache": {"memory": "96Mi"}}}
RESTARTED: Final[dict[str, Object]] = {
    **KEPT,
    "image": {"image": "memcached:2"},
    "cache.maxConnections": {"cache": {"maxConnections": 8192}},
    "cache.threads": {"cache": {"threads": 2}},
    "cache.evictions": {"cache": {"evictions": False}},
    "cache.verbosity": {"cache": {"verbosity": 1}},
    "cache.extraArgs": {"cache": {"extraArgs": ["--disable-watch"]}},
}
"""Those that keep the items with warm restarts."""
PAIRS: Final[list[tuple[Object, ...]]] = [
    *((COLD, *pair) for pair in combinations(GROWN.values(), 2)),
    *((WARM, *pair) for pair in combinations(RESTARTED.values(), 2)),
    (COLD, *GROWN.values()),
    (WARM, *RESTARTED.values()),
]
NAMES: Final = [
    *(" and ".join(pair) for pair in combinations(GROWN, 2)),
    *(f"{' and '.join(pair)}, warm" for pair in combinations(RESTARTED, 2)),
    "all",
    "all, warm",
]


class Served(Cluster):
    """A cluster whose pods are also on a real API server, with containers of other clients, and scheduled to no node.

    An API server resizes such pods too. Everything but the operator's patches of pods happens in memory.
    """

    def __init__(self, plane: ControlPlane, namespace: str, written: Object, resize: Resize, checks: Checks) -> None:
        self._plane, self._namespace = plane, namespace
        checks.cluster = self
        super().__init__(random.Random(0), written, resize, checks.step)  # noqa: S311 - no secret

    def _create(self, name: str, template: Object, revision: str) -> None:
        first, *others = template["spec"]["containers"]
        containers = [first, PROXY, *others]
        pod = {**template["spec"], "containers": containers, "initContainers": [SIDECAR]}
        super()._create(name, {**template, "spec": pod}, revision)
        created = self.objects[name]
        meta = {part: created["metadata"][part] for part in ("name", "labels", "annotations")}
        self._plane.create(
            PODS, {"metadata": {**meta, "namespace": self._namespace}, "spec": {**pod, "schedulerName": "none"}}
        )

    def patched(self, stored: Object, step: PodStep) -> Object:
        """The pod as the API server returns it."""
        path = PODS.path(self._namespace, stored["metadata"]["name"], step.subresource)
        reply = self._plane.call(lambda client: client.request("PATCH", path, step.patch, STRATEGIC_MERGE_PATCH))
        meta = {part: reply["metadata"].get(part, {}) for part in ("labels", "annotations")}
        spec = {**stored["spec"], "containers": reply["spec"]["containers"]}
        return {**stored, "metadata": {**stored["metadata"], **meta}, "spec": spec}


@pytest.fixture
def resize(plane: ControlPlane, version: str) -> Resize:
    """What the API server can do. Skips the test before Kubernetes 1.33."""
    if not RESIZE.applies(version):
        pytest.skip("this version has no pods/resize")
    return plane.call(discover_resize)


def test_resize_beyond_what_the_node_has(plane: ControlPlane, namespace: str, version: str) -> None:
    """The API server rejects it for another reason than a quota, and before the kubelet sees it."""
    if not NODE_CAPACITY.applies(version):
        pytest.skip("the node reports it in this version")
    node, patch = f"small-{namespace}", {"spec": {"containers": [{**PROXY, "resources": {"requests": {"cpu": "9"}}}]}}

    async def message(client: ApiClient) -> str:
        result = Result()
        await PodSteps(client, whole_store()).make(
            PodStep(pod_of(pod), patch, "resize", "A", "B", "Request less"), result
        )
        return result.problems[0].message

    with without_controllers(plane):
        plane.create(NODES, {"metadata": {"name": node}})
        status = {"status": {"allocatable": {"cpu": "1", "memory": "1Gi"}}}
        path = NODES.path(None, node, "status")
        plane.call(lambda client: client.request("PATCH", path, status, MERGE_PATCH))
        spec = {"containers": [PROXY], "nodeName": node, "automountServiceAccountToken": False}
        pod = plane.create(PODS, {"metadata": {"name": "a", "namespace": namespace}, "spec": spec})
        until(lambda: "enough allocatable resources" in plane.call(message))
        assert plane.call(message).endswith("cpu, requested: 9000, allocatable: 1000. Request less")
        plane.delete(Key(NODES, "", node))


@pytest.mark.parametrize("paused", [False, True], ids=["one edit", "after a pause"])
@pytest.mark.parametrize("changes", PAIRS, ids=NAMES)
def test_changes_together_are_in_effect_and_keep_the_pod(
    plane: ControlPlane, namespace: str, resize: Resize, changes: tuple[Object, ...], *, paused: bool
) -> None:
    first, *others = changes
    written, checks = merged({**spec(), "size": 1}, first), Checks()
    cluster = Served(plane, namespace, written, resize, checks)
    cluster.run(2 * MINUTE)
    uid = cluster.objects["cache-0"]["metadata"]["uid"]
    if paused:
        written = merged(written, PAUSED)
        cluster.change_spec(written)
        cluster.run(MINUTE)
    for change in others:
        written = merged(written, change)
        if paused:
            cluster.change_spec(written)
            cluster.run(MINUTE)
    cluster.change_spec(merged(written, {"rollout": {"paused": None}}))
    cluster.run(10 * MINUTE)
    checks.end(complete=True)
    assert cluster.objects["cache-0"]["metadata"]["uid"] == uid
    assert cluster.status()["Degraded"]["message"] == HEALTHY
