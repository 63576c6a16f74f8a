"""Pods for the tests of the admission policies, and requests for them."""

from typing import Any

from integration.confined import ACCOUNT, ACCOUNT_NAMESPACE, DRY_RUN, LABELS, Work, owner
from integration.control_plane import ControlPlane, until
from memcached_operator.kube.client import APPLY_PATCH, JSON, MERGE_PATCH
from memcached_operator.kube.resource import PODS, STATEFULSETS, Key, Object, Resource
from support.policies import message

STRATEGIC_PATCH = "application/strategic-merge-patch+json"
OURS = "memcached-operator.example.com"
NODES = Resource("", "v1", "Node", "nodes")
ANNOTATIONS = {f"{OURS}/memory": "64", "example.com/theirs": "a"}
RESOURCES = {"requests": {"memory": "64Mi", "cpu": "10m"}, "limits": {"memory": "80Mi"}}
HELPER = {"name": "helper", "image": "example.com/helper:1", "restartPolicy": "Always", "resources": RESOURCES}
CONTAINERS: list[Object] = [
    {"name": name, "image": f"example.com/{name}:1", "resources": RESOURCES} for name in ("memcached", "agent")
]
POD_SPEC: Object = {
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
    template = {"metadata": {"labels": SELECTED | LABELS, "annotations": ANNOTATIONS}, "spec": POD_SPEC}
    spec = {"replicas": 9, "serviceName": "pods", "selector": {"matchLabels": SELECTED}, "template": template}
    meta = {"name": "pods", "namespace": ACCOUNT_NAMESPACE}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec}


def pod(name: str, labels: Object, *owners: Object, **spec: Any) -> Object:
    """A pod like those of the StatefulSet."""
    meta: Object = {"name": name, "namespace": ACCOUNT_NAMESPACE, "labels": labels, "ownerReferences": list(owners)}
    meta["annotations"] = {f"{OURS}/memory": "64"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": POD_SPEC | spec}


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


def container(name: str = "memcached", /, **fields: Any) -> Object:
    """A part of a patch that changes one container."""
    return {"containers": [{"name": name, **fields}]}


def creation(client_type: str = "") -> Work:
    """The creation of a pod, with POST or with server-side apply."""
    new = pod("new", LABELS)
    path = PODS.path(ACCOUNT_NAMESPACE, "new" if client_type else None)
    if not client_type:
        return lambda client: client.request("POST", path, new, params={"dryRun": "All"})
    params = {"dryRun": "All", "fieldManager": "stolen-token"}
    return lambda client: client.request("PATCH", path, new, client_type, params)


IMAGE = "example.com/other:1"
MEMORY: Object = {"requests": {"memory": "128Mi"}, "limits": {"memory": "160Mi"}}
OF_AGENT: Object = {"resources": {"requests": {"cpu": "20m"}}}
EPHEMERAL = {"name": "debugger", "image": IMAGE, "terminationMessagePolicy": "File", "imagePullPolicy": "Always"}
TOLERATIONS = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
]
"""Those of every pod."""
BINDING = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": WAITING}, "target": {"name": "none"}}
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": WAITING}}


OPERATION, POD = message("only changes, resizes and deletes pods"), message("writes a pod only if a StatefulSet")
METADATA, SPEC = message("changes only annotations and labels of a pod"), message("changes only containers of a pod")
LABEL, ANNOTATION = message("changes only controller-revision-hash"), message("changes only memcached-operator.example")
DEPENDENTS, GRACE = message("deletes a pod only with its dependents"), message("gracePeriodSeconds: ")

Requests = dict[str, tuple[Work, str]]
REQUESTS: Requests = {
    "nothing": (patch({}), ""),
    "image": (patch_spec(**container(image=IMAGE)), ""),
    "image of the agent": (patch_spec(**container("agent", image=IMAGE)), ""),
    "image of a running pod": (patch_spec(RUNNING, **container(image=IMAGE)), ""),
    "revision": (patch_metadata(labels={"controller-revision-hash": "new"}), ""),
    "new annotation": (patch_metadata(annotations={f"{OURS}/update": "{}"}), ""),
    "changed annotation": (patch_metadata(annotations={f"{OURS}/memory": "128"}), ""),
    "removed annotation": (patch_metadata(annotations={f"{OURS}/memory": None}), ""),
    "removal of all annotations": (patch({"metadata": {"annotations": {f"{OURS}/memory": None}}}, RUNNING), ""),
    "no managed fields": (patch_metadata(managedFields=[{}]), ""),
    "all at once": (
        patch({"metadata": {"annotations": {f"{OURS}/args": "-m 64"}}, "spec": container("agent", image=IMAGE)}),
        "",
    ),
    "delete": (delete(RUNNING), ""),
    "delete with a grace period": (delete(RUNNING, gracePeriodSeconds=1), ""),
    "delete in the background": (delete(RUNNING, propagationPolicy="Background"), ""),
    "delete without a node": (delete(WAITING), ""),
    "delete after a failure": (delete(FAILED), ""),
    "create": (creation(), OPERATION),
    "create by an apply": (creation(APPLY_PATCH), OPERATION),
    "run a command": (connect("POST", "exec", command="ls", stdout="true"), OPERATION),
    "attach": (connect("POST", "attach", stdout="true"), OPERATION),
    "forward a port": (connect("POST", "portforward", ports="11211"), OPERATION),
    "connect to a port": (connect("GET", "proxy"), OPERATION),
    "evict": (request("POST", EVICTION, subresource="eviction"), OPERATION),
    "bind to a node": (request("POST", BINDING, subresource="binding"), OPERATION),
    "status": (patch({"status": {"phase": "Failed"}}, subresource="status"), OPERATION),
    "ephemeral container": (patch_spec(subresource="ephemeralcontainers", ephemeralContainers=[EPHEMERAL]), OPERATION),
    **{f"image of a pod {what}": (patch_spec(name, **container(image=IMAGE)), POD) for what, name in FOREIGN.items()},
    **{f"delete a pod {what}": (delete(name), POD) for what, name in FOREIGN.items()},
    "claim a pod": (patch({"metadata": {"labels": LABELS}}, FOREIGN["unlabelled"]), POD),
    "finalizer": (patch_metadata(finalizers=["example.com/held"]), METADATA),
    "no controller": (patch_metadata(ownerReferences=[{"$patch": "replace"}]), METADATA),
    "label": (patch_metadata(labels={"app": "web"}), LABEL),
    "changed label": (patch_metadata(labels={"app.kubernetes.io/managed-by": "Helm"}), LABEL),
    "removed label": (patch_metadata(labels={"app.kubernetes.io/instance": None}), LABEL),
    "annotation": (patch_metadata(annotations={"example.com/new": "a"}), ANNOTATION),
    "changed annotation of a user": (patch_metadata(annotations={"example.com/theirs": "b"}), ANNOTATION),
    "removed annotation of a user": (patch_metadata(annotations={"example.com/theirs": None}), ANNOTATION),
    "annotation with a similar prefix": (patch_metadata(annotations={f"{OURS}.evil/a": "b"}), ANNOTATION),
    "deadline": (patch_spec(activeDeadlineSeconds=1), SPEC),
    "tolerations": (patch_spec(tolerations=[*TOLERATIONS, {"operator": "Exists"}]), SPEC),
    "image of an init container": (patch_spec(initContainers=[{"name": "helper", "image": IMAGE}]), SPEC),
    "no scheduling gates": (patch_spec(GATED, schedulingGates=[{"$patch": "replace"}]), SPEC),
    "delete without dependents": (delete(WAITING, propagationPolicy="Orphan"), DEPENDENTS),
    "delete without dependents, as formerly": (delete(WAITING, orphanDependents=True), DEPENDENTS),
    "delete before the containers end": (delete(RUNNING, gracePeriodSeconds=0), GRACE),
}
"""Requests for pods, and the whole message of each denial; no message if the request is allowed."""
RESIZES: Requests = {
    "memory": (patch_spec(subresource="resize", **container(resources=MEMORY)), ""),
    "agent": (patch_spec(subresource="resize", **container("agent", **OF_AGENT)), ""),
    "added limit": (patch_spec(subresource="resize", **container(resources={"limits": {"cpu": "1"}})), ""),
    "nothing": (patch({}, subresource="resize"), ""),
    **{what: (patch_spec(name, "resize", **container(resources=MEMORY)), POD) for what, name in FOREIGN.items()},
    "init container": (
        patch_spec(subresource="resize", initContainers=[{"name": "helper", "resources": MEMORY}]),
        SPEC,
    ),
}
"""The same with the subresource for resizing, which not all versions have."""
