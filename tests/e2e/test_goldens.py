"""The API server takes every golden as it stands, under Pod Security `restricted`, and stores what is in it."""

from collections.abc import Iterator

import pytest
import yaml

import goldens
from memcached_operator.engine.compare import covers
from support import kube
from support.kube import Object, eventually, kubectl


@pytest.fixture
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


def with_pod(cr: Object, deployment: Object, service: Object) -> list[Object]:
    """A golden, and one pod as its Deployment would make it: Pod Security only warns of Deployments."""
    template = deployment["spec"]["template"]
    pod: Object = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}
    pod["metadata"] = {**template["metadata"], **{key: cr["metadata"][key] for key in ("name", "namespace")}}
    return [cr, deployment, service, pod]


def test_every_golden_is_accepted_and_kept(restricted: str) -> None:
    wanted = [obj for path in goldens.paths() for obj in with_pod(*goldens.objects(path))]
    items = [placed(obj, restricted) for obj in wanted]
    everything: Object = {"apiVersion": "v1", "kind": "List", "items": items}
    done = kubectl("create", "--dry-run=server", "--output=yaml", "--filename=-", stdin=everything)
    assert "PodSecurity" not in done.stderr
    stored: list[Object] = list(yaml.safe_load_all(done.stdout))
    for kept, obj in zip(stored, wanted, strict=True):
        kept["metadata"]["namespace"] = obj["metadata"]["namespace"]
        where = f"{obj['kind']} {obj['metadata']['name']}"
        assert obj["kind"] in ("Memcached", "Pod") or covers(kept, obj), f"{where} would be written again and again"
