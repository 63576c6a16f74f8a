"""Updates in place: a real API server accepts the patches that the operator sends in the simulation."""

import json
from functools import partial
from itertools import combinations
from typing import Final

import pytest

from integration.confined import merged
from integration.control_plane import ControlPlane, until, without_controllers
from integration.pods import NODES
from memcached_operator.engine.kind import PodStep
from memcached_operator.engine.writes.pod_steps import PodSteps
from memcached_operator.engine.writes.result import Result
from memcached_operator.kube.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiClient
from memcached_operator.kube.resource import PODS, Key, Object
from simulation.api.requests import Reply, Request
from simulation.in_place.cache import MINUTE, Cache, run, spec
from support.kubernetes import NODE_CAPACITY, RESIZE
from support.stores import whole_store
from unit.builders import pod_of

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


class Patches:
    """The patches of pods that the operator sends in the simulation, for pods with containers of other clients."""

    def __init__(self) -> None:
        self.pod: Object = {}
        self.sent: list[tuple[Request, Object]] = []

    def admit(self, pod: Object) -> Object:
        """The pod as another client changes it."""
        first, *others = pod["spec"]["containers"]
        spec = {**pod["spec"], "containers": [first, PROXY, *others], "initContainers": [SIDECAR]}
        self.pod = {**pod, "spec": spec}
        return self.pod

    def record(self, cache: Cache) -> None:
        """Record the patches from now on."""
        handle = cache.plane.server.handle

        def recorded(request: Request) -> Reply:
            reply = handle(request)
            if request.method == "PATCH" and "/pods/" in request.path and request.user and reply.status == 200:
                self.sent.append((request, json.loads(reply.body)))
            return reply

        cache.plane.server.handle = recorded

    def send(self, plane: ControlPlane, namespace: str) -> None:
        """Send them to a real API server, with a pod that is scheduled to no node. It changes the pod alike."""
        meta = {part: self.pod["metadata"][part] for part in ("name", "labels", "annotations")}
        spec = {**self.pod["spec"], "schedulerName": "none"}
        plane.create(PODS, {"metadata": {**meta, "namespace": namespace}, "spec": spec})
        for request, simulated in self.sent:
            subresource = "resize" if request.path.endswith("/resize") else None
            path, body = PODS.path(namespace, meta["name"], subresource), request.json()
            for each in ("uid", "resourceVersion"):
                body["metadata"].pop(each)
            reply = plane.call(partial(_patch, path=path, body=body))
            assert _changeable(reply) == _changeable(simulated)


async def _patch(client: ApiClient, path: str, body: Object) -> Object:
    return await client.request("PATCH", path, body, STRATEGIC_MERGE_PATCH)


def _changeable(pod: Object) -> Object:
    """What a patch of a pod can change."""
    found = {part: pod["metadata"].get(part, {}) for part in ("labels", "annotations")}
    containers = {each["name"]: (each["image"], each.get("resources", {})) for each in pod["spec"]["containers"]}
    return {**found, "containers": containers}


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
    plane: ControlPlane, namespace: str, version: str, changes: tuple[Object, ...], *, paused: bool
) -> None:
    if not RESIZE.applies(version):
        pytest.skip("this version has no pods/resize")
    first, *others = changes
    initial, patches = merged(spec(size=1), first), Patches()

    async def scenario(cache: Cache) -> None:
        patches.record(cache)
        before, written = cache.uids(), initial
        if paused:
            written = merged(written, PAUSED)
            await cache.write(written, MINUTE)
        for change in others:
            written = merged(written, change)
            if paused:
                await cache.write(written, MINUTE)
        await cache.write(merged(written, {"rollout": {"paused": None}}), 10 * MINUTE)
        cache.check_complete()
        assert cache.uids() == before

    run(scenario, initial, admit=patches.admit)
    assert patches.sent
    patches.send(plane, namespace)
