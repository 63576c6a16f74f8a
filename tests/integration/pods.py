"""Pods for the tests of the admission policies, and requests for them."""

from typing import Any

from integration.confined import ACCOUNT, ACCOUNT_NAMESPACE, DRY_RUN, LABELS, Work, owner
from integration.control_plane import ControlPlane, until
from memcached_operator.kube.client import JSON, MERGE_PATCH
from memcached_operator.kube.resource import PODS, STATEFULSETS, Key, Object, Resource

STRATEGIC_PATCH = "application/strategic-merge-patch+json"
OURS = "memcached-operator.example.com"
NODES = Resource("", "v1", "Node", "nodes")
ANNOTATIONS = {f"{OURS}/memory": "64", "example.com/theirs": "a"}
RESOURCES = {"requests": {"memory": "64Mi", "cpu": "10m"}, "limits": {"memory": "80Mi"}}
HELPER = {"name": "helper", "image": "example.com/helper:1", "restartPolicy": "Always", "resources": RESOURCES}
CONTAINERS: list[Object] = [
    {"name": name, "image": f"example.com/{name}:1", "resources": RESOURCES} for name in ("memcached", "agent")
]
SPEC: Object = {
    "serviceAccountName": ACCOUNT,
    "automountServiceAccountToken": False,
    "schedulerName": "none",
    "containers": CONTAINERS,
    "initContainers": [HELPER],
}
"""A pod that is never scheduled: an API server resizes only running pods whose kubelet supports it, and these."""
SELECTED = {"test": "pods"}
WAITING, GATED, RUNNING, FAILED = (f"pods-{number}" for number in range(4))
"""Slots of a StatefulSet: not scheduled, with a scheduling gate, with running containers, and with ended ones."""
FOREIGN = {
    "unlabelled": "pods-4",
    "with another label": "pods-5",
    "of another group": "pods-6",
    "of another kind": "of-another-kind",
    "without a controller": "without-controller",
}
"""Pods that the controller may not write, by what they are. The StatefulSet controller removes its reference from pods
with other names."""


def stateful_set() -> Object:
    """A StatefulSet that creates the pod WAITING, which is never ready: its controller then ignores the other slots.

    Its selector also matches pods without the operator's label.
    """
    template = {"metadata": {"labels": SELECTED | LABELS, "annotations": ANNOTATIONS}, "spec": SPEC}
    spec = {"replicas": 9, "serviceName": "pods", "selector": {"matchLabels": SELECTED}, "template": template}
    meta = {"name": "pods", "namespace": ACCOUNT_NAMESPACE}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec}


def pod(name: str, labels: Object, *owners: Object, **spec: Any) -> Object:
    """A pod like those of the StatefulSet."""
    meta: Object = {"name": name, "namespace": ACCOUNT_NAMESPACE, "labels": labels, "ownerReferences": list(owners)}
    meta["annotations"] = {f"{OURS}/memory": "64"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": SPEC | spec}


def pods(stateful_set_uid: str, deployment: Object, node: str) -> list[Object]:
    """All pods except WAITING."""
    theirs = {**owner("StatefulSet", "apps/v1", stateful_set_uid), "name": "pods"}
    other = {**owner("Deployment", "apps/v1", deployment["metadata"]["uid"]), "name": deployment["metadata"]["name"]}
    ours = SELECTED | LABELS
    return [
        pod(GATED, ours, theirs, schedulingGates=[{"name": "example.com/gate"}]),
        pod(RUNNING, ours, theirs, nodeName=node),
        pod(FAILED, ours, theirs, nodeName=node),
        pod(FOREIGN["unlabelled"], SELECTED, theirs),
        pod(FOREIGN["with another label"], ours | {"app.kubernetes.io/managed-by": "Helm"}, theirs),
        pod(FOREIGN["of another group"], ours, {**theirs, "apiVersion": "apps.example.com/v1"}),
        pod(FOREIGN["of another kind"], LABELS, other),
        pod(FOREIGN["without a controller"], LABELS, {**theirs, "controller": False}),
    ]


def create(plane: ControlPlane, deployment: Object) -> None:
    """Create all pods, one of them of the Deployment; wait until RUNNING runs and FAILED has failed."""
    node = plane.call(lambda client: client.request("GET", NODES.path(None)))["items"][0]["metadata"]["name"]
    uid = plane.create(STATEFULSETS, stateful_set())["metadata"]["uid"]
    for each in pods(uid, deployment, node):
        plane.create(PODS, each)
    until(lambda: plane.get(key(WAITING)))
    for name in (RUNNING, FAILED):
        until(lambda name=name: plane.must_get(key(name))["status"]["phase"] == "Running")
    path = PODS.path(ACCOUNT_NAMESPACE, FAILED, "status")
    plane.call(lambda client: client.request("PATCH", path, {"status": {"phase": "Failed"}}, MERGE_PATCH))


def key(name: str) -> Key:
    """The key of a pod."""
    return Key(PODS, ACCOUNT_NAMESPACE, name)


def request(method: str, body: Object | None = None, name: str = WAITING, subresource: str = "") -> Work:
    """A dry run of a request for a pod; a PATCH is a strategic merge patch, as the controller sends it."""
    path = PODS.path(ACCOUNT_NAMESPACE, name, subresource)
    content_type = STRATEGIC_PATCH if method == "PATCH" else JSON
    return lambda client: client.request(method, path, body, content_type, DRY_RUN)


def connect(method: str, subresource: str, **params: str) -> Work:
    """A connection to RUNNING, which has no dry run."""
    path = PODS.path(ACCOUNT_NAMESPACE, RUNNING, subresource)
    return lambda client: client.request(method, path, params=params)


def patch(body: Object, name: str = WAITING, subresource: str = "") -> Work:
    """A strategic merge patch of a pod."""
    return request("PATCH", body, name, subresource)


def patch_metadata(**fields: Any) -> Work:
    """A patch of the metadata."""
    return patch({"metadata": fields})


def patch_spec(name: str = WAITING, /, subresource: str = "", **fields: Any) -> Work:
    """A patch of the spec."""
    return patch({"spec": fields}, name, subresource)


def delete(name: str, **options: Any) -> Work:
    """A deletion with these options."""
    return request("DELETE", {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"], **options}, name)
