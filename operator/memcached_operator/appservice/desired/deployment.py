"""The Deployment of an AppService.

The pod template is stable across releases, as for a Memcached: for the same spec, every later release builds an
identical template (docs/decisions/template-stability.md). The golden files check this.
"""

from typing import Any

from memcached_api.appservice.types import AppServiceSpec
from memcached_api.kubernetes import ResourceRequirements, canonical_env
from memcached_api.quantity import canonical_resource_list
from memcached_operator.appservice.desired.ports import container_ports
from memcached_operator.kube.resource import Object
from memcached_operator.parts.pods import drain
from memcached_operator.parts.workloads import children

APP_NAME = "appservice"
COMPONENT = "app"

DRAIN_SECONDS = 5
"""Seconds from the start of a pod's termination to SIGTERM. During this time nodes may still send new connections."""


def deployment(cr: Object, spec: AppServiceSpec) -> Object:
    """Build the Deployment: `spec.size` pods with one container each. The container has the object's name."""
    return children.deployment(cr, APP_NAME, COMPONENT, spec.size, _pod(cr["metadata"]["name"], spec))


def _pod(name: str, spec: AppServiceSpec) -> Object:
    return {
        # Otherwise, anyone who can create an AppService could act as the namespace's default ServiceAccount.
        "automountServiceAccountToken": False,
        # Otherwise, a pod's environment depends on the Services that exist when it starts.
        "enableServiceLinks": False,
        # The user and the group are those of the image. The namespace's Pod Security level applies.
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(name, spec)],
    }


def _container(name: str, spec: AppServiceSpec) -> Object:
    container: dict[str, Any] = {"name": name, "image": spec.image, "imagePullPolicy": "IfNotPresent"}
    if spec.envs:
        container["env"] = [canonical_env(env) for env in spec.envs]
    if spec.resources is not None:
        container["resources"] = _resources(spec.resources)
    if spec.ports:
        container["ports"] = container_ports(spec.ports)
        container["lifecycle"] = drain(DRAIN_SECONDS)
    return container


def _resources(resources: ResourceRequirements) -> Object:
    """Limits and requests in canonical form, as the API server stores them."""
    return {
        part: canonical_resource_list(amounts)
        for part, amounts in (("limits", resources.limits), ("requests", resources.requests))
        if amounts
    }
