"""Builders for the parts of a child that are the same for every kind."""

from typing import Any

from memcached_operator.kube import labels
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Object, Resource


def deployment(cr: Object, app_name: str, component: str, replicas: int, pod: Object) -> Object:
    """A Deployment with the object's name, `replicas` pods and the pod spec `pod`."""
    own = _labels(cr, app_name, component)
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": _selector(cr, app_name)},
        "template": {"metadata": {"labels": own}, "spec": pod},
    }
    return _child(DEPLOYMENTS, cr, own, spec)


def service(cr: Object, app_name: str, component: str, spec: dict[str, Any]) -> Object:
    """A Service with the object's name that selects its pods. `spec`: the other fields of its spec."""
    return _child(SERVICES, cr, _labels(cr, app_name, component), spec | {"selector": _selector(cr, app_name)})


def _child(resource: Resource, cr: Object, own: dict[str, str], spec: Object) -> Object:
    meta = cr["metadata"]
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": meta["name"], "namespace": meta["namespace"], "labels": own},
        "spec": spec,
    }


def _selector(cr: Object, app_name: str) -> dict[str, str]:
    return labels.selector_labels(app_name, cr["metadata"]["name"])


def _labels(cr: Object, app_name: str, component: str) -> dict[str, str]:
    return _selector(cr, app_name) | {labels.COMPONENT: component}
