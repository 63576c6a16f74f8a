"""Builders for the parts of a child that are the same for every kind."""

from collections.abc import Iterable, Mapping
from typing import Any

from memcached_api.shared.metadata import InheritedMetadata
from memcached_operator.kube import labels
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, STATEFULSETS, Object, Resource


def deployment(cr: Object, app_name: str, component: str, replicas: int, pod: Object) -> Object:
    """A Deployment with the object's name, `replicas` pods and the pod spec `pod`."""
    return child(DEPLOYMENTS, cr, app_name, component, spec=_workload(cr, app_name, component, replicas, pod))


def statefulset(cr: Object, app_name: str, component: str, replicas: int, pod: Object, service_name: str) -> Object:
    """A StatefulSet with the object's name. `service_name`: the headless Service for the DNS names of its pods."""
    spec = _workload(cr, app_name, component, replicas, pod) | {"serviceName": service_name}
    return child(STATEFULSETS, cr, app_name, component, spec=spec)


def service(cr: Object, app_name: str, component: str, spec: Mapping[str, Any], name: str | None = None) -> Object:
    """A Service that selects the object's pods. `spec`: the other fields of its spec."""
    selected = {**spec, "selector": selector(cr, app_name)}
    return child(SERVICES, cr, app_name, component, name=name, spec=selected)


def child(
    resource: Resource, cr: Object, app_name: str, component: str, name: str | None = None, **content: Any
) -> Object:
    """A child with the operator's labels. `name`: by default the object's. `content`: its spec, or other top fields."""
    meta = cr["metadata"]
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": name or meta["name"],
            "namespace": meta["namespace"],
            "labels": _labels(cr, app_name, component),
        },
        **content,
    }


def with_metadata(obj: Object, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Object:
    """A child or a pod template with more labels and annotations. Its own take precedence."""
    metadata = {**obj["metadata"], "labels": {**labels, **obj["metadata"]["labels"]}}
    merged = {**annotations, **metadata.get("annotations", {})}
    return {**obj, "metadata": {**metadata, "annotations": merged} if merged else metadata}


def inheriting(children: Iterable[Object], inherited: InheritedMetadata | None) -> tuple[Object, ...]:
    """The complete children with the labels and annotations of the spec for all of them. Their own take precedence."""
    if inherited is None:
        return tuple(children)
    return tuple(with_metadata(each, inherited.labels, inherited.annotations) for each in children)


def selector(cr: Object, app_name: str) -> dict[str, str]:
    """The labels that select the pods of an object."""
    return labels.selector_labels(app_name, cr["metadata"]["name"])


def _workload(cr: Object, app_name: str, component: str, replicas: int, pod: Object) -> Object:
    return {
        "replicas": replicas,
        "selector": {"matchLabels": selector(cr, app_name)},
        "template": {"metadata": {"labels": _labels(cr, app_name, component)}, "spec": pod},
    }


def _labels(cr: Object, app_name: str, component: str) -> dict[str, str]:
    return selector(cr, app_name) | {labels.COMPONENT: component}
