"""Autoscalers of others, with the real autoscaler controller."""

from integration.control_plane import ControlPlane, create_as_user, eventually
from integration.test_manager import cache, create, patch, run_operator, wait_until_ready
from memcached_operator.kube.client import MERGE_PATCH, ApiClient
from memcached_operator.kube.resource import DEPLOYMENTS, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from support.admitted import admitted
from support.draining import condition

AUTOSCALERS = Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
REMEDY = "to apiVersion cache.example.com/v1, kind Memcached, name cache"


def autoscaler(namespace: str, target: Resource) -> Object:
    """An autoscaler. Without metrics, its controller only lowers a size above `maxReplicas`."""
    return {
        "apiVersion": AUTOSCALERS.api_version,
        "kind": AUTOSCALERS.kind,
        "metadata": {"name": "load", "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": target.api_version, "kind": target.kind, "name": "cache"},
            "minReplicas": 1,
            "maxReplicas": 5,
        },
    }


async def wait_for_conflict(client: ApiClient, namespace: str) -> Object:
    """Wait until the autoscaler is reported as a Conflict with its remedy; return the Memcached."""

    async def check() -> Object | None:
        found = await client.get(Key(MEMCACHEDS, namespace, "cache")) or {}
        degraded = condition(found, "Degraded")
        reported = degraded.get("reason") == "Conflict" and REMEDY in degraded["message"]
        return found if reported and condition(found, "Progressing")["reason"] == "RolloutComplete" else None

    found = await eventually(check)
    assert found is not None
    return found


def test_autoscaler_of_the_deployment_is_a_conflict_and_then_scales_the_memcached(
    plane: ControlPlane, namespace: str
) -> None:
    key, own = Key(AUTOSCALERS, namespace, "load"), Key(MEMCACHEDS, namespace, "cache")
    audit = plane.audit()

    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, **admitted(size=2)))
        await wait_until_ready(client, namespace)
        await create_as_user(client, AUTOSCALERS, autoscaler(namespace, DEPLOYMENTS))
        await patch(client, key, {"spec": {"maxReplicas": 1}})
        found = await wait_for_conflict(client, namespace)
        assert condition(found, "Available")["status"] == "True"
        await patch(client, key, {"spec": autoscaler(namespace, MEMCACHEDS)["spec"]})
        scale = own.resource.path(namespace, own.name, "scale")
        answer = await client.request("PATCH", scale, {"spec": {"replicas": 3}}, MERGE_PATCH)
        # An autoscaler finds the pods, whose figures it needs, with this selector.
        deployment = await client.get(Key(DEPLOYMENTS, namespace, "cache")) or {}
        selected = dict(pair.split("=") for pair in answer["status"]["selector"].split(","))
        assert selected == deployment["spec"]["selector"]["matchLabels"]
        found = await wait_until_ready(client, namespace)
        assert (found["spec"]["size"], len(found["status"]["nodes"])) == (3, 3)
        assert condition(found, "Degraded")["message"] == "All components are healthy", "the size is a new one"

    run_operator(plane, (namespace,), scenario)
    writes = audit.writes(namespace)
    of_objects = {what for what in writes if "memcacheds" in what}
    assert of_objects == {"create memcacheds", "patch memcacheds/scale", "patch memcacheds/status"}
    assert writes["patch memcacheds/scale"] == 1
    assert 3 <= writes["patch deployments"] <= 10, "each change of the autoscaler is reverted, and the size is changed"
