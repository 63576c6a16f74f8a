"""The API server takes every golden as it stands, under Pod Security `restricted`, and stores what is in it."""

from collections.abc import Iterator
from pathlib import Path

import goldens
import pytest
import yaml
from support import kube
from support.kube import Object, eventually, kubectl

from memcached_operator.engine.compare import covers

PATHS = {path.stem: path for path in goldens.paths()}


@pytest.fixture(scope="module")
def restricted() -> Iterator[str]:
    """A namespace that takes in no pod with more rights than it needs."""
    with kube.own_namespace() as name:
        modes = [f"pod-security.kubernetes.io/{mode}=restricted" for mode in ("enforce", "warn")]
        kubectl("label", "namespace", name, *modes)
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        eventually(lambda: kube.read(account), 15, "pods may be created")
        yield name


def placed(obj: Object, namespace: str) -> Object:
    """The object in another namespace."""
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def pod_of(deployment: Object) -> Object:
    """One pod as a Deployment would make it: Pod Security only warns of Deployments, but refuses pods."""
    template = deployment["spec"]["template"]
    meta = {**template["metadata"], "name": deployment["metadata"]["name"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_a_golden_is_accepted_and_kept(restricted: str, path: Path) -> None:
    cr, deployment, service = goldens.objects(path)
    items = [placed(obj, restricted) for obj in (cr, deployment, service, pod_of(deployment))]
    everything: Object = {"apiVersion": "v1", "kind": "List", "items": items}
    done = kubectl("create", "--dry-run=server", "--output=yaml", "--filename=-", stdin=everything)
    assert "PodSecurity" not in done.stderr
    stored: list[Object] = list(yaml.safe_load_all(done.stdout))
    assert [obj["kind"] for obj in stored] == ["Memcached", "Deployment", "Service", "Pod"]
    for kept, obj in zip(stored[1:3], (deployment, service), strict=True):
        kept["metadata"]["namespace"] = obj["metadata"]["namespace"]
        assert covers(kept, obj), f"{obj['kind']} is stored in another form: it would be written again and again"
