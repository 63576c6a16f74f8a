"""The request budgets of an object with all children, also while it is paused and in steady state."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from integration import test_manager
from integration.control_plane import ControlPlane, eventually
from integration.test_manager import cache, create
from memcached_api.images import Images
from memcached_operator import metrics
from memcached_operator.engine.reporting.conditions import PROGRESS_PERIOD
from memcached_operator.kube import resource as kinds
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import Key, Object
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from support.admitted import admitted
from support.audit import Audit

QUIET = 2.0
"""Seconds without a write after which no more is expected: twice the minimum between two statuses."""

STATUS = "patch memcacheds/status"
ALL = ("create deployments", "create services", "create poddisruptionbudgets", "create networkpolicies")
POOLED = (kinds.DEPLOYMENTS, kinds.SERVICES, kinds.POD_DISRUPTION_BUDGETS, kinds.NETWORK_POLICIES)
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

    async def scenario(client: ApiClient) -> None:
        async def check(action: Callable[[], Any], expected: dict[str, int], *, paused: bool = False) -> None:
            audit = plane.audit()
            await asyncio.to_thread(action)
            if not paused:
                await test_manager.wait_until_ready(client, namespace)
            seconds = time.monotonic() - audit.started
            await asyncio.to_thread(assert_within, audit, seconds, namespace, expected)

        obj = cache(namespace, **admitted(size=2, networkPolicy={}))
        await check(lambda: plane.create(MEMCACHEDS, obj), dict.fromkeys(ALL, 1))
        paused = False
        for spec, expected in CHANGES:
            paused = spec.get("rollout", {}).get("paused", paused)
            await check(lambda spec=spec: plane.change(key, {"spec": spec}), expected, paused=paused)

    test_manager.run_operator(plane, (namespace,), scenario)


SYNC_PERIOD = 0.5
"""Seconds between resyncs."""


def reconciles() -> int:
    """The number of reconciles of Memcacheds in this process."""
    (metric,) = metrics.RECONCILES.collect()
    return sum(
        int(sample.value)
        for sample in metric.samples
        if sample.name.endswith("_total") and sample.labels["controller"] == "memcached"
    )


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

    async def check_steady(_: ApiClient) -> None:
        audit, before = plane.audit(), reconciles()

        def lists() -> dict[str, int]:
            found = test_manager.operator_requests(namespace, audit.requests())
            listed = [each["objectRef"]["resource"] for each in found if each["verb"] == "list"]
            return {child.plural: listed.count(child.plural) for child in memcached(Images()).owns}

        async def resynced() -> bool:
            return reconciles() >= before + RESYNCS and min((await asyncio.to_thread(lists)).values()) >= RESYNCS

        await eventually(resynced)
        assert audit.writes(namespace) == {}

    async def first(client: ApiClient) -> None:
        await create(client, cache(namespace, **admitted(**EVERYTHING)))
        await test_manager.wait_until_ready(client, namespace)
        assert not [child for child in POOLED if await test_manager.missing(client, Key(child, namespace, "cache"))]
        await asyncio.to_thread(plane.audit().wait_until_quiet, QUIET, namespace)
        await check_steady(client)

    test_manager.run_operator(plane, (namespace,), first, SYNC_PERIOD)
    test_manager.run_operator(plane, (namespace,), check_steady, SYNC_PERIOD)
