"""The pods of every golden are accepted under the kind's Pod Security level."""

import pytest

import goldens
from support import kube
from support.kube import Object, eventually, kubectl

LEVELS = {"memcached": "restricted", "memcachedproxy": "restricted", "appservice": "baseline"}
"""The Pod Security level of each kind's pods: those of an AppService run as the user of their image."""

REFERENCES = ("priorityClassName", "runtimeClassName", "serviceAccountName")
"""Fields that name objects which must exist when a pod is created, and do not here."""

pytestmark = pytest.mark.usefixtures("cluster")


def pod_of(cr: Object, workload: Object, namespace: str) -> Object:
    """A pod of a golden: Pod Security only warns about Deployments."""
    template = workload["spec"]["template"]
    spec = {name: value for name, value in template["spec"].items() if name not in REFERENCES}
    meta = {**template["metadata"], "name": cr["metadata"]["name"], "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


@pytest.mark.parametrize("kind", LEVELS)
def test_pods_of_every_golden_are_accepted(kind: str, namespace: str) -> None:
    modes = [f"pod-security.kubernetes.io/{mode}={LEVELS[kind]}" for mode in ("enforce", "warn")]
    kubectl("label", "namespace", namespace, *modes)
    eventually(
        lambda: kube.read(f"/api/v1/namespaces/{namespace}/serviceaccounts/default"), description="pods can be created"
    )
    found = [goldens.objects(path) for path in goldens.paths(kind).values()]
    pods = [pod_of(cr, workload, namespace) for cr, workload, *_ in found]
    everything: Object = {"apiVersion": "v1", "kind": "List", "items": pods}
    done = kubectl("create", "--dry-run=server", "--filename=-", stdin=everything)
    assert "PodSecurity" not in done.stderr
