"""Each version of Kubernetes behaves as docs/install.md says, where no other test shows it for every version."""

from collections.abc import Callable, Mapping

import pytest

from integration.control_plane import ControlPlane, until
from integration.pods import STRATEGIC_PATCH
from memcached_operator.kube.client import JSON, ApiError
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, STATEFULSETS, Object
from support.kube import kubectl
from support.kubernetes import (
    CLAIMS,
    FILE_KEYS,
    LOWER_MEMORY,
    RATCHETING,
    RESIZE,
    UNAVAILABLE_SLOTS,
    USER_NAMESPACES,
    Difference,
)

pytestmark = pytest.mark.server

IMAGE = "example.com/memcached:1"
LABELS = {"app": "cache"}
Probe = Callable[[ControlPlane, str], bool]
"""Tries in a namespace whether a version has a behavior."""
RATCHETED = 'kubernetes_feature_enabled{name="CRDValidationRatcheting",stage="BETA"}'
"""The API server's metric of the feature gate, as long as it can be disabled."""


def container(megabytes: int) -> Object:
    """A container with a memory limit."""
    memory = {"memory": f"{megabytes}Mi"}
    return {"name": "memcached", "image": IMAGE, "resources": {"requests": memory, "limits": memory}}


def error_of(plane: ControlPlane, method: str, path: str, body: Object, content_type: str = JSON) -> str:
    """The error message of a request that is only a dry run; empty if it would succeed."""
    try:
        plane.call(lambda client: client.request(method, path, body, content_type, {"dryRun": "All"}))
    except ApiError as error:
        return error.message
    return ""


def resizes(plane: ControlPlane, namespace: str) -> bool:
    """Whether pods have a subresource for resizes."""
    del namespace
    served = plane.call(lambda client: client.request("GET", "/api/v1"))
    return "pods/resize" in [each["name"] for each in served["resources"]]


def lowers_memory(plane: ControlPlane, namespace: str) -> bool:
    """Whether a resize can lower a memory limit."""
    spec = {"automountServiceAccountToken": False, "schedulerName": "none", "containers": [container(64)]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "cache", "namespace": namespace}, "spec": spec}
    path = PODS.path(namespace)
    # The namespace has no ServiceAccount at first.
    until(lambda: not error_of(plane, "POST", path, pod))
    plane.create(PODS, pod)
    change = {"spec": {"containers": [container(32)]}}
    return not error_of(plane, "PATCH", f"{path}/cache/resize", change, STRATEGIC_PATCH)


def always_ratchets(plane: ControlPlane, namespace: str) -> bool:
    """Whether ratcheting cannot be turned off."""
    del plane, namespace
    return RATCHETED not in kubectl("get", "--raw=/metrics").stdout


def keeps_unavailable_slots(plane: ControlPlane, namespace: str) -> bool:
    """Whether a StatefulSet keeps its `maxUnavailable`."""
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container(64)]}}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    spec: Object = {"serviceName": "cache", "selector": {"matchLabels": LABELS}, "template": template}
    kind = {"apiVersion": STATEFULSETS.api_version, "kind": STATEFULSETS.kind}
    meta = {"name": "cache", "namespace": namespace}
    stored = plane.would_create(STATEFULSETS, {**kind, "metadata": meta, "spec": {**spec, "updateStrategy": strategy}})
    return "maxUnavailable" in stored["spec"]["updateStrategy"]["rollingUpdate"]


def keeps(**specs: Object) -> Probe:
    """A probe: whether a Deployment keeps each of these words, given with a spec of pods that has it; all or none."""

    def kept(plane: ControlPlane, namespace: str, word: str, spec: Object) -> bool:
        kind = {"apiVersion": DEPLOYMENTS.api_version, "kind": DEPLOYMENTS.kind}
        template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container(64)], **spec}}
        workload: Object = {"selector": {"matchLabels": LABELS}, "template": template}
        body = {**kind, "metadata": {"name": "cache", "namespace": namespace}, "spec": workload}
        return not plane.rejects(DEPLOYMENTS, body) and f"'{word}'" in str(plane.would_create(DEPLOYMENTS, body))

    def probe(plane: ControlPlane, namespace: str) -> bool:
        (found,) = {kept(plane, namespace, word, spec) for word, spec in specs.items()}
        return found

    return probe


UNMASKED: Object = {"hostUsers": False, "containers": [{**container(64), "securityContext": {"procMount": "Unmasked"}}]}
FROM_FILE: Object = {
    "volumes": [{"name": "all", "emptyDir": {}}],
    "containers": [
        {
            **container(64),
            "env": [{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "all", "path": "a", "key": "b"}}}],
        }
    ],
}
PROBES: Mapping[Difference, Probe] = {
    RESIZE: resizes,
    RATCHETING: always_ratchets,
    LOWER_MEMORY: lowers_memory,
    USER_NAMESPACES: keeps(
        hostUsers={"hostUsers": False},
        supplementalGroupsPolicy={"securityContext": {"supplementalGroupsPolicy": "Strict"}},
        Unmasked=UNMASKED,
    ),
    CLAIMS: keeps(resourceClaims={"resourceClaims": [{"name": "gpu", "resourceClaimName": "theirs"}]}),
    FILE_KEYS: keeps(fileKeyRef=FROM_FILE),
    UNAVAILABLE_SLOTS: keeps_unavailable_slots,
}
"""By the difference. The tests of rules and of placing show the others."""


@pytest.mark.usefixtures("kubeconfig")
@pytest.mark.parametrize("difference", PROBES, ids=lambda each: each.behavior)
def test_version_behaves_as_the_page_says(
    plane: ControlPlane, version: str, namespace: str, difference: Difference
) -> None:
    assert PROBES[difference](plane, namespace) is difference.applies(version)
