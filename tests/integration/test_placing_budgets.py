"""The request budgets of an object with all children, and the Deployment of one without any of the new fields."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import yaml

import goldens
from integration.control_plane import ControlPlane
from integration.test_manager import cache, create, missing, run_operator, wait_until_ready
from memcached_operator.kube.client import Client
from memcached_operator.kube.resource import DEPLOYMENTS, NETWORK_POLICIES, POD_DISRUPTION_BUDGETS, Key, Object
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from memcached_operator.status.conditions import PROGRESS_PERIOD
from support.admitted import admitted
from support.audit import Audit

QUIET = 2.0
"""Seconds without a write after which no more is expected: twice the minimum between two statuses."""

STATUS = "patch memcacheds/status"
ALL = ("create deployments", "create services", "create poddisruptionbudgets", "create networkpolicies")
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
        {"patch deployments": 1, "patch services": 1, "patch networkpolicies": 1},
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

    run_operator(plane, (namespace,), scenario, kinds=[memcached(goldens.IMAGE)])
    assert yaml.safe_dump(found[0]) == yaml.safe_dump(released)
