"""Fields of a spec that only the API server can judge: it drops some of them, or rejects a value in a child."""

import asyncio
from typing import Any

import pytest

from integration.control_plane import ControlPlane, eventually
from integration.test_manager import cache, create, patch, run_operator, wait_until_ready
from integration.test_placing_budgets import QUIET
from memcached_operator.appservice.controller import APPSERVICES, appservice
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import PODS, SERVICES, Key, Object
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcached.status import LABEL_KEYS_REMOVED
from support import appservice as objects
from support.draining import condition
from support.kubernetes import LABEL_KEYS
from support.lists import listed

pytestmark = pytest.mark.server

INSTANCE = "app.kubernetes.io/instance"
TERM: Object = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, "matchLabelKeys": [INSTANCE]}
AFFINITY: Object = {
    "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}]}
}
"""Keeps apart only the pods of the same Memcached."""


def selectors(pods: list[Object]) -> list[Any]:
    """The selector of the term in each pod."""
    (term,) = AFFINITY["podAntiAffinity"]
    affinities = [pod["spec"]["affinity"]["podAntiAffinity"][term] for pod in pods]
    return [affinity[0]["podAffinityTerm"]["labelSelector"] for affinity in affinities]


@pytest.mark.parametrize("identity", ["Pooled", "Stable"])
def test_label_keys_reach_the_pods_or_their_removal_is_reported(
    plane: ControlPlane, namespace: str, version: str, identity: str
) -> None:
    expected = {"matchExpressions": [{"key": INSTANCE, "operator": "In", "values": ["cache"]}]}

    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, size=2, identity=identity, image="example.com/memcached:1"))
        await wait_until_ready(client, namespace)
        change = {"spec": {"podTemplate": {"spec": {"affinity": AFFINITY}}}}
        await patch(client, Key(MEMCACHEDS, namespace, "cache"), change)
        found = await wait_until_ready(client, namespace)
        removed = condition(found, "Degraded")["message"].endswith(LABEL_KEYS_REMOVED)
        assert removed != LABEL_KEYS.applies(version)
        pods, _ = await listed(client, PODS, namespace)
        assert (
            selectors([pod for pod in pods if not pod["metadata"].get("deletionTimestamp")])
            == [{} if removed else expected] * 2
        )
        audit = plane.audit()
        await patch(client, Key(MEMCACHEDS, namespace, "cache"), {"metadata": {"labels": {"a": "b"}}})
        await asyncio.to_thread(audit.wait_until_quiet, QUIET, namespace)
        assert audit.writes(namespace) == {"patch memcacheds": 1}, "this patch"

    run_operator(plane, (namespace,), scenario)


def test_node_port_is_judged_by_the_api_server_and_an_allocated_one_can_be_pinned(
    plane: ControlPlane, namespace: str
) -> None:
    key, service = Key(APPSERVICES, namespace, "app"), Key(SERVICES, namespace, "app")

    async def message(client: ApiClient) -> str:
        state = condition(await client.get(key) or {}, "Degraded")
        return state["message"] if state.get("reason") == "ApplyFailed" else ""

    async def scenario(client: ApiClient) -> None:
        await client.request("POST", APPSERVICES.path(namespace), objects.appservice(namespace, ports=[{"port": 80}]))
        stored = await wait_until_ready(client, namespace, "app", APPSERVICES)
        (allocated,) = stored["status"]["nodePorts"]
        before = (await client.get(service) or {})["spec"]
        await patch(client, key, {"spec": {"ports": [{"port": 80, "nodePort": 20080}]}})
        rejected = await eventually(lambda: message(client))
        assert "spec.ports[0].nodePort: Invalid value: 20080: provided port is not in the valid range" in rejected
        pinned = [{"port": 80, "nodePort": allocated["nodePort"]}]
        await patch(client, key, {"spec": {"ports": pinned}})
        assert (await wait_until_ready(client, namespace, "app", APPSERVICES))["spec"]["ports"] == pinned
        assert (await client.get(service) or {})["spec"] == before

    run_operator(plane, (namespace,), scenario, kinds=(appservice(),))
