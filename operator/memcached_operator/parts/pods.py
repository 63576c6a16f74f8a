"""The parts of a pod template that are the same for every kind that runs memcached.

They are stable across releases: see `memcached/desired/pods.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from memcached_api.kubernetes import LocalObjectReference
from memcached_api.shared.pod_template import PodSpec, PodTemplate, Rollout, pod_security_context
from memcached_operator.kube.resource import Object
from memcached_operator.parts.placement import placement, pod_metadata
from memcached_operator.parts.workloads import children

RESTRICTED: Final[dict[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
"""The security context of every container."""


def drain(seconds: int) -> Object:
    """The lifecycle of a container that serves until nodes have stopped sending it new connections."""
    return {"preStop": {"sleep": {"seconds": seconds}}}


def restricted_pod(
    template: PodTemplate | None,
    selector: dict[str, str],
    containers: list[Object],
    pull_secrets: Sequence[LocalObjectReference],
) -> Object:
    """A pod spec without a token and without root. `selector`: the labels of the object's pods."""
    placed = template.spec if template else PodSpec()
    secrets = {"imagePullSecrets": [{"name": secret.name} for secret in pull_secrets]} if pull_secrets else {}
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod_security_context(placed.security_context),
        "containers": containers,
        **placement(placed, selector),
        **secrets,
    }


def with_pod_metadata(
    workload: Object, template: PodTemplate | None, rollout: Rollout | None, annotations: Mapping[str, str]
) -> Object:
    """A workload whose pods have the labels and annotations of the spec too. `annotations`: the kind's own."""
    metadata = pod_metadata(template, rollout, annotations)
    built = children.with_metadata(workload["spec"]["template"], **metadata)
    return {**workload, "spec": {**workload["spec"], "template": built}}
