"""The Deployment of an AppService.

Its pod template is a promise, as that of a Memcached: for the same spec every later release builds it byte for byte the
same (docs/decisions/template-stability.md). The goldens hold it.
"""

from typing import Any

from memcached_api.appservice import AppServiceSpec
from memcached_api.kubernetes import ResourceRequirements, stored
from memcached_api.quantity import canonical_amounts
from memcached_operator.appservice.desired.ports import container_ports
from memcached_operator.kube.resource import Object
from memcached_operator.workloads import children

APP_NAME = "appservice"
COMPONENT = "app"

DRAIN_SECONDS = 5
"""Seconds between a pod's removal from the endpoints and SIGTERM: until then nodes may still send it connections."""


def deployment(cr: Object, spec: AppServiceSpec) -> Object:
    """Build the Deployment: `spec.size` pods with one container each, named as the object."""
    return children.deployment(cr, APP_NAME, COMPONENT, spec.size, _pod(cr["metadata"]["name"], spec))


def _pod(name: str, spec: AppServiceSpec) -> Object:
    return {
        # Else whoever may create an AppService could act as the namespace's ServiceAccount.
        "automountServiceAccountToken": False,
        # Else the environment of a pod would depend on which Services there are when it starts.
        "enableServiceLinks": False,
        # User, group and capabilities are the image's own choice, within the namespace's Pod Security level.
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(name, spec)],
    }


def _container(name: str, spec: AppServiceSpec) -> Object:
    container: dict[str, Any] = {"name": name, "image": spec.image, "imagePullPolicy": "IfNotPresent"}
    if spec.envs:
        container["env"] = [stored(env) for env in spec.envs]
    if spec.resources is not None:
        container["resources"] = _resources(spec.resources)
    if spec.ports:
        container["ports"] = container_ports(spec.ports)
        container["lifecycle"] = {"preStop": {"sleep": {"seconds": DRAIN_SECONDS}}}
    return container


def _resources(resources: ResourceRequirements) -> Object:
    """In the spelling in which the API server stores them."""
    return {
        part: canonical_amounts(amounts)
        for part, amounts in (("limits", resources.limits), ("requests", resources.requests))
        if amounts
    }
