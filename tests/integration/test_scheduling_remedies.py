"""Pods that the real scheduler cannot place, and each remedy of the plugin and of docs/troubleshoot.md as written."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import pytest

from integration.control_plane import ControlPlane, eventually
from integration.test_manager import cache, create, patch, run_operator, wait_until_ready
from kubectl_memcached.model.effects import SCHEDULING as REMEDIES
from memcached_api.remedies import text_of
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import PODS, Key, Object
from memcached_operator.memcached.containers import SCHEDULING
from memcached_operator.memcached.controller import MEMCACHEDS
from support.draining import HOSTNAME, NODES, POOL, ZONE, condition, is_ready, node, nodes_of, pods_of

Remedy = Callable[[ApiClient, str], Awaitable[None]]
ASKS_THE_SCHEDULER: Final = pytest.mark.nightly
"""It waits for the retries of the scheduler, and shows what the scheduler does with a remedy."""
SMALL: Final[Object] = {"resources": {"requests": {"cpu": "10m", "memory": "64Mi"}}}
SINGLE: Final[Object] = {"size": 1, **SMALL}


def placed(pool: str, **pod: Any) -> Object:
    """The part of a spec that places pods in a pool of nodes."""
    spec = {**pod, "nodeSelector": {POOL: pool, **pod.get("nodeSelector", {})}}
    return {"podTemplate": {"spec": spec}}


async def add(client: ApiClient, pool: str, number: int = 1, **content: Any) -> None:
    """Add a node, and wait until it is ready."""
    found = node(pool, number, **{name: text for name, text in content.items() if name in ("cpu", "memory")})
    found["spec"] = {name: content[name] for name in ("unschedulable", "taints") if name in content}
    if pods := content.get("pods"):
        found["status"] = {part: {**found["status"][part], "pods": pods} for part in ("allocatable", "capacity")}
    await client.request("POST", NODES.path(None), found)
    key = Key(NODES, "", found["metadata"]["name"])

    async def ready() -> bool:
        live = await client.get(key)
        taints = (live or {}).get("spec", {}).get("taints", [])
        return live is not None and is_ready(live) and not any("not-ready" in each["key"] for each in taints)

    await eventually(ready)


async def add_node(client: ApiClient, pool: str) -> None:
    """Add a node."""
    await add(client, pool, 9)


def change_node(**content: Any) -> Remedy:
    """Change the first node."""
    return lambda client, pool: patch(client, Key(NODES, "", f"{pool}-0"), content)


def change(**spec: Any) -> Remedy:
    """Change the Memcached."""
    return lambda client, pool: patch(client, Key(MEMCACHEDS, pool, "cache"), {"spec": spec})


def change_pod(**fields: Any) -> Remedy:
    """Change the fields of spec.podTemplate.spec. A value of None removes a field."""
    return change(podTemplate={"spec": fields})


async def at_once(client: ApiClient, pool: str) -> None:
    """Replace all pods at once. The scheduler tries a pod again after 5 minutes, and a new one at once."""
    await change(rollout={"maxUnavailable": "100%"})(client, pool)

    async def replaced() -> bool:
        pods = await pods_of(client, pool)
        return len(pods) == 2 and not any("affinity" in pod["spec"] for pod in pods)

    await eventually(replaced)
    for pod in await pods_of(client, pool):
        if not nodes_of([pod])[0]:
            await client.request("DELETE", PODS.path(pool, pod["metadata"]["name"]))


async def relax(client: ApiClient, pool: str) -> None:
    """Relax the affinity. The next message then says how the pods with the previous one give way."""
    await change_pod(affinity=None)(client, pool)
    await message_with(client, pool, "existing pods anti-affinity")
    await at_once(client, pool)


async def message_with(client: ApiClient, pool: str, text: str) -> None:
    """Wait until the cache reports this message of the scheduler."""

    async def reported() -> bool:
        found = await client.get(Key(MEMCACHEDS, pool, "cache")) or {}
        message = condition(found, "Available").get("message", "")
        return "cannot be scheduled" in message and text in message and text_of(SCHEDULING[text])[1:] in message

    await eventually(reported)


class Case(NamedTuple):
    """`node`: its content. `text`: a part of the scheduler's message. `remedies`: each is enough by itself."""

    text: str
    node: Object
    spec: Object
    remedies: dict[str, Remedy]
    before: Remedy | None = None
    """A change of a running cache that leads to the message."""


TAINT: Final = {"key": "example.com/a", "value": "b", "effect": "NoSchedule"}
ALONE: Final = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app.kubernetes.io/instance": "cache"}}, "topologyKey": HOSTNAME}
    ]
}
ZONES: Final = {
    "maxSkew": 1,
    "minDomains": 2,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app.kubernetes.io/instance": "cache"}},
}
RACK: Final = "example.com/rack"
ONE_ZONE: Final = {**ZONES, "minDomains": None}
PREFERRED: Final = {**ONE_ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
IN_TURN: Final = {"maxSurge": 0, "maxUnavailable": 1}
APART: Final[Object] = {"size": 2, "affinity": {"podAntiAffinity": ALONE}, "rollout": IN_TURN}
CASES: Final = (
    Case(
        "were unschedulable",
        {"unschedulable": True},
        {},
        {"uncordon": change_node(spec={"unschedulable": None}), "add": add_node},
    ),
    Case(
        "Insufficient cpu",
        {"cpu": "100m"},
        {"resources": {"requests": {"cpu": "1"}}},
        {"lower": change(resources={"requests": {"cpu": "50m"}}), "add": add_node},
    ),
    Case(
        "Insufficient memory",
        {"memory": "200Mi"},
        {"cache": {"memory": "512Mi"}, "resources": {}},
        {
            "lower the cache": change(cache={"memory": "64Mi"}),
            "lower the request": change(resources={"requests": {"memory": "100Mi"}}),
            "add": add_node,
        },
    ),
    Case(
        "untolerated taint",
        {"taints": [TAINT]},
        {},
        {
            "tolerate": change_pod(tolerations=[{"key": "example.com/a", "operator": "Exists"}]),
            "remove": change_node(spec={"taints": None}),
        },
    ),
    Case(
        "node affinity/selector",
        {},
        {"nodeSelector": {"example.com/disk": "fast"}},
        {
            "correct": change_pod(nodeSelector={"example.com/disk": None}),
            "label": change_node(metadata={"labels": {"example.com/disk": "fast"}}),
        },
    ),
    Case(
        "constraints (missing required label)",
        {},
        {"topologySpreadConstraints": [{**ONE_ZONE, "topologyKey": RACK}]},
        {
            "label": change_node(metadata={"labels": {RACK: "a"}}),
            "correct": change_pod(topologySpreadConstraints=[ONE_ZONE]),
        },
    ),
    Case(
        "topology spread constraints",
        {},
        {"size": 2, "topologySpreadConstraints": [ZONES]},
        {"relax": change_pod(topologySpreadConstraints=[PREFERRED]), "add": add_node},
    ),
    Case("match pod anti-affinity", {}, APART, {"relax": relax, "add": add_node}),
    Case("existing pods anti-affinity", {}, APART, {"replace": at_once, "add": add_node}, change_pod(affinity=None)),
    Case("Too many pods", {"pods": "1"}, {"size": 2}, {"add": add_node}),
)
POD_FIELDS: Final = ("nodeSelector", "affinity", "topologySpreadConstraints")


def test_each_remedy_is_tried() -> None:
    assert [case.text for case in CASES] == [*REMEDIES]


def delete_nodes(plane: ControlPlane, pool: str) -> None:
    """Delete the nodes of a pool."""
    found = plane.call(lambda client: client.request("GET", NODES.path(None)))["items"]
    for name in (each["metadata"]["name"] for each in found):
        if name.startswith(pool):
            plane.delete(Key(NODES, "", name))


@ASKS_THE_SCHEDULER
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_pods_are_scheduled_after_each_remedy(plane: ControlPlane, namespace: str, case: Case) -> None:
    """One Memcached per remedy would share the nodes: they follow one after the other."""

    async def scenario(client: ApiClient) -> None:
        key = Key(MEMCACHEDS, namespace, "cache")
        fields = {name: case.spec[name] for name in POD_FIELDS if name in case.spec}
        spec = {name: value for name, value in case.spec.items() if name not in POD_FIELDS}
        for number, remedy in enumerate(case.remedies.values()):
            await add(client, namespace, 0, **case.node)
            await create(client, cache(namespace, **{**SINGLE, **spec, **placed(namespace, **fields)}))
            if case.before is not None:
                await message_with(client, namespace, "match pod anti-affinity")
                await case.before(client, namespace)
            await message_with(client, namespace, case.text)
            await remedy(client, namespace)
            assert condition(await wait_until_ready(client, namespace), "Degraded")["reason"] == "AsExpected", number
            await client.request("DELETE", MEMCACHEDS.path(namespace, "cache"))
            for name in (f"{namespace}-0", f"{namespace}-9"):
                if await client.get(Key(NODES, "", name)):
                    await client.request("DELETE", NODES.path(None, name))

            async def gone() -> bool:
                return await client.get(key) is None

            await eventually(gone)

    try:
        run_operator(plane, (namespace,), scenario)
    finally:
        delete_nodes(plane, namespace)


@ASKS_THE_SCHEDULER
@pytest.mark.parametrize(
    "remedy",
    [change(rollout={"maxUnavailable": 1, "maxSurge": 0}), add_node],
    ids=["one pod less instead of one more", "a node more"],
)
def test_rollout_with_as_many_pods_as_nodes(plane: ControlPlane, namespace: str, remedy: Remedy) -> None:
    """The additional pod has no node of its own."""

    async def scenario(client: ApiClient) -> None:
        for number in range(2):
            await add(client, namespace, number)
        spec = placed(namespace, affinity={"podAntiAffinity": ALONE})
        await create(client, cache(namespace, size=2, **SMALL, **spec, rollout={"maxUnavailable": 0, "maxSurge": 1}))
        await wait_until_ready(client, namespace)
        await change(image="example.com/memcached:2")(client, namespace)

        async def reported() -> bool:
            found = await client.get(Key(MEMCACHEDS, namespace, "cache"))
            return "anti-affinity rules" in condition(found or {}, "Progressing").get("message", "")

        await eventually(reported)
        await remedy(client, namespace)
        await wait_until_ready(client, namespace)

    try:
        run_operator(plane, (namespace,), scenario)
    finally:
        delete_nodes(plane, namespace)
