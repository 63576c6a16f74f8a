"""The API server stores every golden in full, also under the kind's Pod Security level."""

import pytest
import yaml

import goldens
from memcached_operator.reconcile.compare import covers
from support import kube
from support.kube import Object, eventually, kubectl

LEVELS = {"memcached": "restricted", "appservice": "baseline"}
"""The Pod Security level of each kind's pods: those of an AppService run as the user of their image."""

REFERENCES = ("priorityClassName", "serviceAccountName")
"""Fields that name objects which must exist when a pod is created, and do not here."""

NOT_SERVED = ("PodMonitor",)
"""Kinds that this cluster lacks; the stand-in for their CRD in other tests accepts everything."""


@pytest.fixture(params=LEVELS)
def kind(request: pytest.FixtureRequest, namespace: str) -> str:
    """Each kind; the namespace enforces the kind's Pod Security level."""
    modes = [f"pod-security.kubernetes.io/{mode}={LEVELS[request.param]}" for mode in ("enforce", "warn")]
    kubectl("label", "namespace", namespace, *modes)
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    eventually(lambda: kube.read(account), 60, "pods can be created")
    return request.param


def placed(obj: Object, namespace: str) -> Object:
    """The object in another namespace."""
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def with_pod(cr: Object, deployment: Object, *others: Object) -> list[Object]:
    """A golden, and one pod of its Deployment: Pod Security only warns about Deployments."""
    template = deployment["spec"]["template"]
    spec = {name: value for name, value in template["spec"].items() if name not in REFERENCES}
    pod: Object = {"apiVersion": "v1", "kind": "Pod", "spec": spec}
    pod["metadata"] = {**template["metadata"], **{key: cr["metadata"][key] for key in ("name", "namespace")}}
    return [cr, deployment, *others, pod]


def test_every_golden_is_accepted_and_stored_in_full(kind: str, namespace: str) -> None:
    built = [obj for path in goldens.paths(kind).values() for obj in with_pod(*goldens.objects(path))]
    wanted = [obj for obj in built if obj["kind"] not in NOT_SERVED]
    items = [placed(obj, namespace) for obj in wanted]
    everything: Object = {"apiVersion": "v1", "kind": "List", "items": items}
    done = kubectl("create", "--dry-run=server", "--output=yaml", "--filename=-", stdin=everything)
    assert "PodSecurity" not in done.stderr
    stored: list[Object] = list(yaml.safe_load_all(done.stdout))
    for kept, obj in zip(stored, wanted, strict=True):
        kept["metadata"]["namespace"] = obj["metadata"]["namespace"]
        where = f"{obj['kind']} {obj['metadata']['name']}"
        child = obj["kind"] in ("Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy")
        assert not child or covers(kept, obj), f"{where} is not stored in full and would be written repeatedly"
