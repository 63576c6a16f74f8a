"""The deployed operator: its processes and objects, and context managers that remove parts of it temporarily."""

import base64
import json
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from support import kube
from support.images import load_copy
from support.kube import Object, eventually, kubectl
from support.memcached import memcached
from support.processes import processes
from support.waiting import READY

ROOT = Path(__file__).parents[2]
NAMESPACE = "memcached-operator-system"
CONTROLLER = "controller-manager"
WEBHOOK = "webhook"
LEASE = "memcached-operator"
AGENT_VARIABLE = "RELATED_IMAGE_AGENT"
CERTIFICATE = "memcached-operator-webhook-cert"
CONFIGURATIONS = {
    "MutatingWebhookConfiguration": "memcached-operator-mutating-webhook-configuration",
    "ValidatingWebhookConfiguration": "memcached-operator-validating-webhook-configuration",
}
CRD_SIZE_ERROR = "spec.size in body should be greater than or equal to 1"
"""Part of the CRD's error for a size of 0, which the webhook's error does not contain."""


@cache
def rendered(overlay: str = "config/default") -> tuple[Object, ...]:
    """The objects of an overlay as `make deploy` renders them, except for the image."""
    return tuple(yaml.safe_load_all(kubectl("kustomize", str(ROOT / overlay)).stdout))


def pods(component: str) -> list[Object]:
    """The pods of one process, without those being deleted."""
    selector = f"app.kubernetes.io/name=memcached-operator,app.kubernetes.io/component={component}"
    found = kube.items("pods", NAMESPACE, selector)
    return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]


def wait_until_up() -> None:
    """Wait until both Deployments are rolled out and admission responds."""
    for component in (CONTROLLER, WEBHOOK):
        name = f"deployment/memcached-operator-{component}"
        kubectl("rollout", "status", "-n", NAMESPACE, name, f"--timeout={READY:g}s")
    eventually(lambda: admission_error() == "", READY, "admission responds")


def admission_error(namespace: str = "default", **spec: Any) -> str:
    """The error of creating a Memcached with a dry run; empty if it would be accepted."""
    obj = memcached(namespace, "dry-run", **spec)
    return kubectl("create", "--dry-run=server", "-f", "-", stdin=obj, check=False).stderr


def scale(replicas: int, *components: str) -> None:
    """Scale the Deployments of these processes; with 0, their pods are deleted immediately."""
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
    """The CA bundle of each webhook, in PEM."""
    return [
        base64.b64decode(webhook["clientConfig"].get("caBundle", ""))
        for kind, name in CONFIGURATIONS.items()
        for webhook in configuration(kind, name)["webhooks"]
    ]


def trust(bundle: bytes) -> None:
    """Set the CA bundle of all webhooks."""
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
    """The name of the pod that holds the lease; empty if no pod does."""
    return (lease().get("holderIdentity") or "").split("_")[0]


def new_leader(former: str, timeout: float) -> str:
    """Wait until a process other than `former` (an identity) holds the lease; return its identity."""

    def other_holder() -> str:
        holder = lease().get("holderIdentity") or ""
        assert holder not in ("", former), holder
        return holder

    return eventually(other_holder, timeout, f"a process other than {former} is the leader")


def kill(pod: Object) -> None:
    """Send SIGKILL from the node to every process in a pod's containers: none of them can shut down cleanly."""
    ids = [status["containerID"].partition("://")[2] for status in pod["status"]["containerStatuses"]]
    found = [pid for name in ids for pid in processes(name)]
    assert found, f"no process of {pod['metadata']['name']} on this machine"
    for pid in found:
        os.kill(pid, signal.SIGKILL)


@contextmanager
def without_webhook() -> Generator[None]:
    """Stop the admission processes until the block ends."""
    try:
        scale(0, WEBHOOK)
        eventually(lambda: "failed calling webhook" in admission_error(), READY, "admission has stopped")
        yield
    finally:
        scale(2, WEBHOOK)
        wait_until_up()


def other_release() -> Object:
    """The container of the controller with other names of its images, which are loaded into the local cluster."""
    name = f"memcached-operator-{CONTROLLER}"
    (manager,) = kube.must_get("deployments", NAMESPACE, name)["spec"]["template"]["spec"]["containers"]
    agent = next(each["value"] for each in manager["env"] if each["name"] == AGENT_VARIABLE)
    variable = {"name": AGENT_VARIABLE, "value": load_copy(agent)}
    return {"name": manager["name"], "image": load_copy(manager["image"]), "env": [variable]}


@contextmanager
def upgraded(release: Object) -> Generator[None]:
    """Run the controller with this container until the block ends."""
    deployment = f"deployment/memcached-operator-{CONTROLLER}"
    patch = {"spec": {"template": {"spec": {"containers": [release]}}}}
    kubectl("patch", "-n", NAMESPACE, deployment, "-p", json.dumps(patch))
    try:
        wait_until_up()
        yield
    finally:
        kubectl("rollout", "undo", "-n", NAMESPACE, deployment)
        wait_until_up()
