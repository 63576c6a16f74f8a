"""The operator as it is deployed: its processes, and how a test puts back what it took away."""

import base64
import json
import os
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import yaml

from support import kube
from support.kube import Object, eventually, kubectl
from support.memcached import memcached

ROOT = Path(__file__).parents[2]
NAMESPACE = "memcached-operator-system"
CONTROLLER = "controller-manager"
WEBHOOK = "webhook"
LEASE = "memcached-operator"
CERTIFICATE = "memcached-operator-webhook-cert"
CONFIGURATIONS = {
    "MutatingWebhookConfiguration": "memcached-operator-mutating-webhook-configuration",
    "ValidatingWebhookConfiguration": "memcached-operator-validating-webhook-configuration",
}
BOUND = "spec.size in body should be greater than or equal to 1"
"""What the CRD says about a size of 0, and the webhook does not."""
UP = 90
"""Seconds for the operator's processes to be up again, on a slow machine."""


@cache
def rendered(overlay: str = "config/default") -> tuple[Object, ...]:
    """The objects of a variant, as `make deploy` renders them, but for the image."""
    return tuple(yaml.safe_load_all(kubectl("kustomize", str(ROOT / overlay)).stdout))


def put_back(*kinds: str) -> None:
    """Apply the objects of some kinds as `make deploy` does: neither more nor less is in them afterwards."""
    text = yaml.safe_dump_all(obj for obj in rendered() if obj["kind"] in kinds)
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)


def pods(component: str) -> list[Object]:
    """The pods of one of the processes that are not being deleted."""
    selector = f"app.kubernetes.io/name=memcached-operator,app.kubernetes.io/component={component}"
    found = kube.items("pods", NAMESPACE, selector)
    return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]


def up() -> None:
    """Wait until both processes run as declared and admission answers."""
    for component in (CONTROLLER, WEBHOOK):
        name = f"deployment/memcached-operator-{component}"
        kubectl("rollout", "status", "-n", NAMESPACE, name, f"--timeout={UP}s")
    eventually(lambda: complaint() == "", UP, "admission answers")


def complaint(namespace: str = "default", **spec: Any) -> str:
    """What is said to somebody who would create a Memcached; empty if it would be accepted. Nothing is stored."""
    asked = memcached(namespace, "would-it-be-admitted", **spec)
    return kubectl("create", "--dry-run=server", "-f", "-", stdin=asked, check=False).stderr


def scale(replicas: int, *components: str) -> None:
    """Have so many pods of each process; with 0, they end in a second."""
    deployments = [f"deployment/memcached-operator-{component}" for component in components]
    kubectl("scale", "-n", NAMESPACE, *deployments, f"--replicas={replicas}")
    if not replicas:
        selector = f"app.kubernetes.io/component in ({','.join(components)})"
        kubectl("delete", "pods", "-n", NAMESPACE, "-l", selector, "--now")


def configuration(kind: str, name: str) -> Object:
    """One of the webhook configurations."""
    found = kube.read(f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}s/{name}")
    assert found is not None, f"{kind} {name} does not exist"
    return found


def bundles() -> list[bytes]:
    """Whom the API server trusts, per webhook, in PEM."""
    return [
        base64.b64decode(webhook["clientConfig"].get("caBundle", ""))
        for kind, name in CONFIGURATIONS.items()
        for webhook in configuration(kind, name)["webhooks"]
    ]


def trust(bundle: bytes) -> None:
    """Have the API server trust these, and no others."""
    text = base64.b64encode(bundle).decode()
    for kind, name in CONFIGURATIONS.items():
        count = len(configuration(kind, name)["webhooks"])
        paths = [f"/webhooks/{index}/clientConfig/caBundle" for index in range(count)]
        patch = [{"op": "add", "path": path, "value": text} for path in paths]
        kubectl("patch", kind, name, "--type=json", "-p", json.dumps(patch))


def lease() -> Object:
    """The spec of the operator's lease."""
    return kube.must_get("leases", NAMESPACE, LEASE)["spec"]


def leader() -> str:
    """The name of the pod that holds the lease; empty while none does."""
    return (lease().get("holderIdentity") or "").split("_")[0]


def new_leader(former: str, timeout: float) -> str:
    """Wait until another process holds the lease than the one of this identity."""

    def look() -> str:
        holder = lease().get("holderIdentity") or ""
        assert holder not in ("", former), holder
        return holder

    return eventually(look, timeout, f"another process than {former} leads")


def kill(pod: Object) -> None:
    """SIGKILL every process in a pod's containers, from the node: nothing in it can react."""
    ids = [status["containerID"].partition("://")[2] for status in pod["status"]["containerStatuses"]]
    found = [pid for name in ids for pid in _processes_in(name)]
    assert found, f"no process of {pod['metadata']['name']} on this machine"
    for pid in found:
        os.kill(pid, signal.SIGKILL)


def _processes_in(container: str) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            groups = path.read_text()
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            continue
        if container in groups:
            yield int(path.parent.name)


def metrics(pod: Object) -> dict[str, float]:
    """What a process tells of itself: each line of its metrics, with labels, and the value."""
    with urlopen(f"http://{pod['status']['podIP']}:8383/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[:1] != "#")}


def restarts(component: str) -> int:
    """How often containers of a process were started again."""
    return sum(status["restartCount"] for pod in pods(component) for status in pod["status"]["containerStatuses"])


@contextmanager
def stopped() -> Generator[None]:
    """No process of the operator runs."""
    try:
        scale(0, CONTROLLER, WEBHOOK)
        yield
    finally:
        scale(2, CONTROLLER, WEBHOOK)
        up()


@contextmanager
def without_webhook() -> Generator[None]:
    """No admission process runs."""
    try:
        scale(0, WEBHOOK)
        eventually(lambda: "failed calling webhook" in complaint(), UP, "admission is away")
        yield
    finally:
        scale(2, WEBHOOK)
        up()


@contextmanager
def without_configurations() -> Generator[None]:
    """The API server asks no webhook of ours. They come back as they were: trusting the same CA at once."""
    trusted = bundles()[0]
    try:
        for kind, name in CONFIGURATIONS.items():
            kubectl("delete", kind, name)
        yield
    finally:
        put_back(*CONFIGURATIONS)
        trust(trusted)
        up()


@contextmanager
def without_rules() -> Generator[None]:
    """The CRD accepts any spec, as an older or a foreign one would have."""
    plain: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    name = "memcacheds.cache.example.com"
    crd = yaml.safe_load(yaml.safe_dump(next(obj for obj in rendered() if obj["metadata"]["name"] == name)))
    for version in crd["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        schema.pop("x-kubernetes-validations")
        schema["properties"]["spec"] = plain
        version["subresources"].pop("scale")
    try:
        kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=crd)
        eventually(lambda: BOUND not in complaint(size=0), UP, "the CRD's rules are gone")
        yield
    finally:
        put_back("CustomResourceDefinition")
        eventually(lambda: BOUND in complaint(size=0), UP, "the CRD's rules hold again")
