"""The admission policies: what a token of the controller's account can do with pods."""

from collections.abc import Iterator

import pytest

from integration import pods
from integration.confined import ACCOUNT, ACCOUNT_NAMESPACE, Account, Work, dry_run, merged, owner
from integration.control_plane import CRDS, ControlPlane, is_served, until
from integration.pods import IMAGE, POD, RESOURCES, WAITING, request
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, STATEFULSETS, Key, Object, Resource
from support import policies
from support.kubernetes import RESIZE
from support.monitors import monitor_crd

pytestmark = pytest.mark.server


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


@pytest.mark.parametrize(("work", "message"), pods.REQUESTS.values(), ids=pods.REQUESTS.keys())
def test_only_the_steps_of_a_rollout_are_allowed(stolen_token: Account, work: Work, message: str) -> None:
    assert stolen_token.denial(work) == message


@pytest.mark.usefixtures("resizable")
@pytest.mark.parametrize(("work", "message"), pods.RESIZES.values(), ids=pods.RESIZES.keys())
def test_only_resizes_of_containers_are_allowed(stolen_token: Account, work: Work, message: str) -> None:
    assert stolen_token.denial(work) == message


def test_an_update_of_the_whole_pod_is_allowed(plane: ControlPlane, stolen_token: Account) -> None:
    """Without a resourceVersion, which the API server adds before it evaluates policies."""
    live = merged(plane.must_get(pods.key(WAITING)), {"metadata": {"resourceVersion": None}})
    live["spec"]["containers"][0]["image"] = IMAGE
    assert not stolen_token.denial(request("PUT", live))


def test_all_pods_of_a_namespace_cannot_be_deleted(stolen_token: Account) -> None:
    path = PODS.path(ACCOUNT_NAMESPACE)
    denied = stolen_token.denial(lambda client: client.request("DELETE", path, params={"dryRun": "All"}))
    assert denied == POD


CONTAINERS = "spec.containers: memcached-operator changes only image"
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
    assert denied == message
