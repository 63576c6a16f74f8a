"""The request budgets of an object with all children, also while it is paused and in steady state.

And the Deployment of an object without any of the new fields.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import yaml

import goldens
from integration.control_plane import ControlPlane, eventually
from integration.test_manager import (
    SYNC_PERIOD,
    cache,
    create,
    missing,
    operator_requests,
    run_operator,
    wait_until_ready,
)
from integration.test_placing_autoscalers import reconciles, wait_until_idle
from memcached_api.images import Images
from memcached_operator.kube.client import Client
from memcached_operator.kube.resource import (
    DEPLOYMENTS,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    SERVICES,
    Key,
    Object,
    nested_map,
)
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from memcached_operator.status.conditions import PROGRESS_PERIOD
from support.admitted import admitted
from support.audit import Audit
from support.draining import condition, pods_of

QUIET = 2.0
"""Seconds without a write after which no more is expected: twice the minimum between two statuses."""

STATUS = "patch memcacheds/status"
ALL = ("create deployments", "create services", "create poddisruptionbudgets", "create networkpolicies")
POOLED = (DEPLOYMENTS, SERVICES, POD_DISRUPTION_BUDGETS, NETWORK_POLICIES)
PEERS = [{"podSelector": {"matchLabels": {"app": "web"}}}, {"ipBlock": {"cidr": "192.0.2.0/24"}}]

CHANGES: list[tuple[Object, dict[str, int]]] = [
    (
        {
            "networkPolicy": {"from": PEERS},
            "podDisruptionBudget": {"maxUnavailable": "50%"},
            "service": {"labels": {"team": "a"}, "annotations": {"example.com/a": "b"}},
            "rollout": {"maxSurge": 2, "minReadySeconds": 1},
        },
        # The first change of a child also transfers the field ownership.
        {"patch networkpolicies": 2, "patch poddisruptionbudgets": 2, "patch services": 2, "patch deployments": 2},
    ),
    (
        {
            "networkPolicy": {"from": PEERS[:1]},
            "podDisruptionBudget": {"maxUnavailable": 2},
            "service": None,
            "rollout": {"paused": True},
        },
        {"patch networkpolicies": 1, "patch poddisruptionbudgets": 1, "patch services": 1, "patch deployments": 1},
    ),
    ({"size": 3}, {"patch deployments": 1}),
    (
        {"rollout": {"paused": False}, "containerPort": 11311},
        # The policy opens the new port first, and closes the previous one when no pod serves it any more.
        {"patch deployments": 1, "patch services": 1, "patch networkpolicies": 2},
    ),
    (
        {"networkPolicy": None, "podDisruptionBudget": None},
        {"delete networkpolicies": 1, "delete poddisruptionbudgets": 1},
    ),
]
"""Changes of the spec, one after the other, and the writes of children that each may cost."""


def assert_within(audit: Audit, seconds: float, namespace: str, expected: dict[str, int]) -> None:
    """Assert exactly these writes of children, and two statuses, or more if progress took long."""
    audit.wait_until_quiet(QUIET, namespace)
    writes = audit.writes(namespace)
    assert 1 <= writes.pop(STATUS) <= 2 + seconds // PROGRESS_PERIOD
    assert writes == expected


def test_request_budgets_with_all_children(plane: ControlPlane, namespace: str) -> None:
    key = Key(MEMCACHEDS, namespace, "cache")

    async def scenario(client: Client) -> None:
        async def check(action: Callable[[], Any], expected: dict[str, int], *, paused: bool = False) -> None:
            audit = plane.audit()
            await asyncio.to_thread(action)
            if not paused:
                await wait_until_ready(client, namespace)
            seconds = time.monotonic() - audit.started
            await asyncio.to_thread(assert_within, audit, seconds, namespace, expected)

        obj = cache(namespace, **admitted(size=2, networkPolicy={}))
        await check(lambda: plane.create(MEMCACHEDS, obj), dict.fromkeys(ALL, 1))
        paused = False
        for spec, expected in CHANGES:
            paused = spec.get("rollout", {}).get("paused", paused)
            await check(lambda spec=spec: plane.change(key, {"spec": spec}), expected, paused=paused)

    run_operator(plane, (namespace,), scenario)


RESYNCS = 3
EVERYTHING: Object = {
    "size": 2,
    "networkPolicy": {"from": [*PEERS, {"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "web"}}}]},
    "podDisruptionBudget": {"maxUnavailable": "50%"},
    "service": {"labels": {"team": "a"}, "annotations": {"example.com/a": "b"}},
    "rollout": {"maxSurge": "50%", "paused": False, "restartedAt": "2026-11-22T10:00:00+01:00"},
    "podTemplate": {
        "metadata": {"labels": {"team": "a"}, "annotations": {"example.com/a": "b"}},
        "spec": {
            "tolerations": [{"key": "reserved", "operator": "Exists"}, {"operator": "Equal", "key": "a"}],
            "affinity": {
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname"}}
                    ]
                }
            },
            "topologySpreadConstraints": [
                {"maxSkew": 2, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
            ],
            "priorityClassName": "",
            "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 30,
            "securityContext": {"runAsUser": 1002, "supplementalGroups": [1003]},
        },
    },
}
"""A spec with all children, and with values that the API server stores in another form."""


def test_resyncs_and_a_restart_with_all_children_write_nothing(plane: ControlPlane, namespace: str) -> None:
    """Each resync lists every child and reconciles the object."""

    async def check_steady(_: Client) -> None:
        audit, before = plane.audit(), reconciles()

        def lists() -> dict[str, int]:
            found = operator_requests(namespace, audit.requests())
            listed = [each["objectRef"]["resource"] for each in found if each["verb"] == "list"]
            return {child.plural: listed.count(child.plural) for child in memcached(Images()).owns}

        async def resynced() -> bool:
            return reconciles() >= before + RESYNCS and min((await asyncio.to_thread(lists)).values()) >= RESYNCS

        await eventually(resynced)
        await wait_until_idle()
        assert audit.writes(namespace) == {}

    async def first(client: Client) -> None:
        await create(client, cache(namespace, **admitted(**EVERYTHING)))
        await wait_until_ready(client, namespace)
        assert not [child for child in POOLED if await missing(client, Key(child, namespace, "cache"))]
        await asyncio.to_thread(plane.audit().wait_until_quiet, QUIET, namespace)
        await check_steady(client)

    run_operator(plane, (namespace,), first, SYNC_PERIOD)
    run_operator(plane, (namespace,), check_steady, SYNC_PERIOD)


PAUSED = "The rollout is paused: 0 of 2 pods are updated; to continue, set spec.rollout.paused to false"


def test_object_that_is_created_paused_has_no_pods_until_it_is_resumed(plane: ControlPlane, namespace: str) -> None:
    """There is no earlier pod template. The other children exist."""
    key = Key(MEMCACHEDS, namespace, "cache")
    audit = plane.audit()

    async def scenario(client: Client) -> None:
        async def paused() -> Object | None:
            found = await client.get(key) or {}
            deployment = await client.get(Key(DEPLOYMENTS, namespace, "cache")) or {}
            # Without this, the Deployment controller may not have seen it yet.
            seen = nested_map(deployment, "status").get("observedGeneration") == 1
            return found if seen and condition(found, "Progressing").get("reason") == "Paused" else None

        await asyncio.to_thread(
            plane.create, MEMCACHEDS, cache(namespace, **admitted(size=2, networkPolicy={}, rollout={"paused": True}))
        )
        found = await eventually(paused)
        assert found is not None
        assert condition(found, "Progressing")["message"] == PAUSED
        assert {type_: condition(found, type_)["status"] for type_ in ("Available", "Degraded")} == {
            "Available": "False",
            "Degraded": "False",
        }
        assert await pods_of(client, namespace) == []
        for child in (SERVICES, POD_DISRUPTION_BUDGETS, NETWORK_POLICIES):
            assert not await missing(client, Key(child, namespace, "cache"))
        # Otherwise the Deployment's first status can conflict with the transfer of the field ownership.
        await asyncio.to_thread(audit.wait_until_quiet, QUIET, namespace)
        await asyncio.to_thread(plane.change, key, {"spec": {"rollout": {"paused": False}}})
        found = await wait_until_ready(client, namespace)
        assert len(found["status"]["nodes"]) == len(await pods_of(client, namespace)) == 2

    run_operator(plane, (namespace,), scenario)
    writes = audit.writes(namespace)
    del writes[STATUS]
    assert writes == {**dict.fromkeys(ALL, 1), "patch deployments": 2}


def golden(namespace: str) -> tuple[Object, Object]:
    """An object of the first release with every field of its time, and its Deployment, in a namespace."""
    obj, deployment, _ = goldens.objects(goldens.FOLDER / "releases/0.1.0/memcached/every-field.yaml")
    for each in (obj, deployment):
        each["metadata"] = {name: each["metadata"][name] for name in ("name", "labels") if name in each["metadata"]}
        each["metadata"]["namespace"] = namespace
    return obj, deployment


def test_object_without_the_new_fields_has_the_deployment_of_the_first_release(
    plane: ControlPlane, namespace: str
) -> None:
    """Byte for byte, as the API server stores it; and no other children."""
    obj, deployment = golden(namespace)
    released = plane.would_create(DEPLOYMENTS, deployment)["spec"]
    found: list[Any] = []

    async def scenario(client: Client) -> None:
        name = obj["metadata"]["name"]
        await create(client, obj)
        await wait_until_ready(client, namespace, name)
        found.append((await client.get(Key(DEPLOYMENTS, namespace, name)) or {})["spec"])
        for resource in (POD_DISRUPTION_BUDGETS, NETWORK_POLICIES):
            assert await missing(client, Key(resource, namespace, name))

    run_operator(plane, (namespace,), scenario, kinds=[memcached(Images(goldens.IMAGE))])
    assert yaml.safe_dump(found[0]) == yaml.safe_dump(released)
