"""The admission policies: what a token of the controller's account can do with pods."""

from collections.abc import Iterator
from typing import Any

import pytest

from integration import pods
from integration.confined import ACCOUNT, ACCOUNT_NAMESPACE, Account, Work, dry_run, merged, owner
from integration.control_plane import CRDS, ControlPlane, is_served, until
from integration.pods import (
    FAILED,
    FOREIGN,
    GATED,
    HELPER,
    OURS,
    RESOURCES,
    RUNNING,
    WAITING,
    connect,
    delete,
    patch,
    patch_metadata,
    patch_spec,
    request,
)
from memcached_operator.kube.client import APPLY_PATCH
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, STATEFULSETS, Key, Object, Resource
from support import policies
from support.kubernetes import RESIZE
from support.monitors import monitor_crd

pytestmark = pytest.mark.server

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


def container(name: str = "memcached", /, **fields: Any) -> Object:
    """A part of a patch that changes one container."""
    return {"containers": [{"name": name, **fields}]}


def create(client_type: str = "") -> Work:
    """The creation of a pod, with POST or with server-side apply."""
    pod = pods.pod("new", pods.LABELS)
    path = PODS.path(ACCOUNT_NAMESPACE, "new" if client_type else None)
    if not client_type:
        return lambda client: client.request("POST", path, pod, params={"dryRun": "All"})
    params = {"dryRun": "All", "fieldManager": "stolen-token"}
    return lambda client: client.request("PATCH", path, pod, client_type, params)


OPERATION, POD = "only changes, resizes and deletes pods", "writes a pod only if a StatefulSet is its controller"
METADATA, LABELS, ANNOTATIONS = "metadata: ", "metadata.labels: ", "metadata.annotations: "
CONTAINERS, SPEC = "spec.containers: ", "spec: "
ORPHANS, GRACE = "with its dependents", "gracePeriodSeconds: "

DENIED: dict[str, tuple[Work, str]] = {
    "create": (create(), OPERATION),
    "create by an apply": (create(APPLY_PATCH), OPERATION),
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
    "claim a pod": (patch({"metadata": {"labels": pods.LABELS}}, FOREIGN["unlabelled"]), POD),
    "finalizer": (patch_metadata(finalizers=["example.com/held"]), METADATA),
    "no controller": (patch_metadata(ownerReferences=[{"$patch": "replace"}]), METADATA),
    "label": (patch_metadata(labels={"app": "web"}), LABELS),
    "changed label": (patch_metadata(labels={"app.kubernetes.io/managed-by": "Helm"}), LABELS),
    "removed label": (patch_metadata(labels={"app.kubernetes.io/instance": None}), LABELS),
    "annotation": (patch_metadata(annotations={"example.com/new": "a"}), ANNOTATIONS),
    "changed annotation": (patch_metadata(annotations={"example.com/theirs": "b"}), ANNOTATIONS),
    "removed annotation": (patch_metadata(annotations={"example.com/theirs": None}), ANNOTATIONS),
    "annotation with a similar prefix": (patch_metadata(annotations={f"{OURS}.evil/a": "b"}), ANNOTATIONS),
    "deadline": (patch_spec(activeDeadlineSeconds=1), SPEC),
    "tolerations": (patch_spec(tolerations=[*TOLERATIONS, {"operator": "Exists"}]), SPEC),
    "image of an init container": (patch_spec(initContainers=[{"name": "helper", "image": IMAGE}]), SPEC),
    "no scheduling gates": (patch_spec(GATED, schedulingGates=[{"$patch": "replace"}]), SPEC),
    "delete without dependents": (delete(WAITING, propagationPolicy="Orphan"), ORPHANS),
    "delete without dependents, as formerly": (delete(WAITING, orphanDependents=True), ORPHANS),
    "delete before the containers end": (delete(RUNNING, gracePeriodSeconds=0), GRACE),
}
ALLOWED: dict[str, Work] = {
    "nothing": patch({}),
    "image": patch_spec(**container(image=IMAGE)),
    "image of the agent": patch_spec(**container("agent", image=IMAGE)),
    "image of a running pod": patch_spec(RUNNING, **container(image=IMAGE)),
    "revision": patch_metadata(labels={"controller-revision-hash": "new"}),
    "new annotation": patch_metadata(annotations={f"{OURS}/update": "{}"}),
    "changed annotation": patch_metadata(annotations={f"{OURS}/memory": "128"}),
    "removed annotation": patch_metadata(annotations={f"{OURS}/memory": None}),
    "removal of all annotations": patch({"metadata": {"annotations": {f"{OURS}/memory": None}}}, RUNNING),
    "no managed fields": patch_metadata(managedFields=[{}]),
    "all at once": patch(
        {
            "metadata": {"labels": {"controller-revision-hash": "new"}, "annotations": {f"{OURS}/args": "-m 64"}},
            "spec": container("agent", image=IMAGE),
        }
    ),
    "delete": delete(RUNNING),
    "delete with a grace period": delete(RUNNING, gracePeriodSeconds=1),
    "delete in the background": delete(RUNNING, propagationPolicy="Background"),
    "delete without a node": delete(WAITING),
    "delete after a failure": delete(FAILED),
}
RESIZES_DENIED: dict[str, tuple[Work, str]] = {
    **{what: (patch_spec(name, "resize", **container(resources=MEMORY)), POD) for what, name in FOREIGN.items()},
    "init container": (
        patch_spec(subresource="resize", initContainers=[{"name": HELPER["name"], "resources": MEMORY}]),
        SPEC,
    ),
}
RESIZES_ALLOWED: dict[str, Work] = {
    "memory": patch_spec(subresource="resize", **container(resources=MEMORY)),
    "agent": patch_spec(subresource="resize", **container("agent", **OF_AGENT)),
    "added limit": patch_spec(subresource="resize", **container(resources={"limits": {"cpu": "1"}})),
    "nothing": patch({}, subresource="resize"),
}


@pytest.fixture(scope="module", autouse=True)
def slots(plane: ControlPlane, children: dict[Resource, Object]) -> Iterator[None]:
    """Pods of a StatefulSet, and of others."""
    pods.create(plane, children[DEPLOYMENTS])
    yield
    plane.delete(Key(STATEFULSETS, ACCOUNT_NAMESPACE, "pods"))


@pytest.fixture
def resizable(version: str) -> None:
    """Skips the test if the API server has no subresource for resizing."""
    if not RESIZE.applies(version):
        pytest.skip("this version has no pods/resize")


@pytest.mark.parametrize(("work", "message"), DENIED.values(), ids=DENIED.keys())
def test_writes_of_other_pods_and_other_fields_are_denied(stolen_token: Account, work: Work, message: str) -> None:
    assert message in stolen_token.denial(work)


@pytest.mark.parametrize("work", ALLOWED.values(), ids=ALLOWED.keys())
def test_the_steps_of_a_rollout_are_allowed(stolen_token: Account, work: Work) -> None:
    assert not stolen_token.denial(work)


@pytest.mark.usefixtures("resizable")
@pytest.mark.parametrize(("work", "message"), RESIZES_DENIED.values(), ids=RESIZES_DENIED.keys())
def test_other_resizes_are_denied(stolen_token: Account, work: Work, message: str) -> None:
    assert message in stolen_token.denial(work)


@pytest.mark.usefixtures("resizable")
@pytest.mark.parametrize("work", RESIZES_ALLOWED.values(), ids=RESIZES_ALLOWED.keys())
def test_resizes_of_containers_are_allowed(stolen_token: Account, work: Work) -> None:
    assert not stolen_token.denial(work)


def test_an_update_of_the_whole_pod_is_allowed(plane: ControlPlane, stolen_token: Account) -> None:
    """Without a resourceVersion, which the API server adds before it evaluates policies."""
    live = merged(plane.must_get(pods.key(WAITING)), {"metadata": {"resourceVersion": None}})
    live["spec"]["containers"][0]["image"] = IMAGE
    assert not stolen_token.denial(request("PUT", live))


def test_all_pods_of_a_namespace_cannot_be_deleted(stolen_token: Account) -> None:
    path = PODS.path(ACCOUNT_NAMESPACE)
    denied = stolen_token.denial(lambda client: client.request("DELETE", path, params={"dryRun": "All"}))
    assert POD in denied


COPIES = Resource("test.example.com", "v1", "Slot", "slots")
"""Objects like pods, of which the API server does not check what may change."""
COPY: Object = {
    "apiVersion": COPIES.api_version,
    "kind": COPIES.kind,
    "metadata": {"name": "copy", "namespace": ACCOUNT_NAMESPACE, "labels": pods.LABELS},
    "spec": {
        "nodeName": "node",
        "containers": [{"name": name, "image": "example.com/a:1", "command": ["a"]} for name in ("a", "b")],
    },
}
FIRST, SECOND = COPY["spec"]["containers"]
OTHERS: dict[str, tuple[list[Object], str]] = {
    "image": ([{**FIRST, "image": IMAGE}, SECOND], ""),
    "another command": ([FIRST, {**SECOND, "command": ["b"]}], CONTAINERS),
    "no command": ([FIRST, {"name": "b", "image": IMAGE}], CONTAINERS),
    "resources": ([{**FIRST, "resources": RESOURCES}, SECOND], CONTAINERS),
    "no image": ([FIRST, {"name": "b", "command": ["a"]}], CONTAINERS),
    "another name": ([FIRST, {**SECOND, "name": "c"}], CONTAINERS),
    "another order": ([SECOND, FIRST], CONTAINERS),
    "another container": ([FIRST, SECOND, {**SECOND, "name": "c"}], CONTAINERS),
    "one container": ([FIRST], CONTAINERS),
}
"""Containers, and the expected part of the denial. All tested versions of Kubernetes reject these changes of pods
before they evaluate policies; later versions may not.
"""


@pytest.fixture(scope="module")
def copy(plane: ControlPlane, stolen_token: Account) -> Iterator[Object]:
    """A stored copy of a pod, to which the policy applies too."""
    plane.create(CRDS, monitor_crd(COPIES))
    rule = {"apiGroups": [COPIES.group], "apiVersions": ["v1"], "resources": ["slots"], "operations": ["UPDATE"]}
    (policy,) = [each for each in policies.policies() if each["metadata"]["name"] == "pods"]
    (binding,) = [each for each in policies.bindings(ACCOUNT_NAMESPACE, ACCOUNT) if "pods" in each["metadata"]["name"]]
    named: Object = {"metadata": {"name": "copies"}}
    found = {
        policies.POLICIES: {
            **policy,
            **named,
            "spec": {**policy["spec"], "matchConstraints": {"resourceRules": [rule]}},
        },
        policies.BINDINGS: {**binding, **named, "spec": {**binding["spec"], "policyName": "copies"}},
    }
    for path, obj in found.items():
        plane.call(lambda client, path=path, obj=obj: client.request("POST", path, obj))
    until(lambda: plane.call(lambda client: is_served(client, COPIES.path(ACCOUNT_NAMESPACE))))
    uid = plane.must_get(Key(STATEFULSETS, ACCOUNT_NAMESPACE, "pods"))["metadata"]["uid"]
    reference = {**owner("StatefulSet", "apps/v1", uid), "name": "pods"}
    live = plane.create(COPIES, merged(COPY, {"metadata": {"ownerReferences": [reference]}}))
    until(lambda: stolen_token.denial(dry_run("PUT", COPIES, merged(live, {"spec": {"nodeName": "other"}}))))
    yield live
    for path in found:
        plane.call(lambda client, path=path: client.request("DELETE", f"{path}/copies"))
    plane.delete(Key(CRDS, "", f"{COPIES.plural}.{COPIES.group}"))


@pytest.mark.parametrize(("containers", "message"), OTHERS.values(), ids=OTHERS.keys())
def test_other_fields_of_containers_are_denied(
    stolen_token: Account, copy: Object, containers: list[Object], message: str
) -> None:
    denied = stolen_token.denial(dry_run("PUT", COPIES, {**copy, "spec": {**copy["spec"], "containers": containers}}))
    assert message in denied
    assert bool(message) is bool(denied)
