"""The Services of a Memcached: a headless one, because clients distribute keys over the pods themselves."""

from collections.abc import Iterator, Mapping
from typing import Any

from memcached_api.memcached.placing import Service
from memcached_api.memcached.types import MemcachedSpec, is_stable
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.desired.addresses import slot_name
from memcached_operator.memcached.desired.pods import APP_NAME, COMPONENT, PORT_NAME
from memcached_operator.workloads import children

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
"""The label that Kubernetes sets on each pod of a StatefulSet."""


def services(cr: Object, spec: MemcachedSpec) -> Iterator[Object]:
    """Build the headless Service, whose DNS name has one address per ready pod, and those of the slots."""
    # The name of a slot has its pod's address also before the pod is ready: clients wait for the pod, not for DNS.
    stable = {"publishNotReadyAddresses": True} if is_stable(spec) else {}
    yield _service(cr, spec, {"clusterIP": "None", **stable}, spec.service or Service())
    if has_slot_services(spec):
        yield from (_slot_service(cr, spec, slot_name(cr, slot)) for slot in range(spec.size))


def has_slot_services(spec: MemcachedSpec) -> bool:
    """Whether each slot has a Service of its own."""
    return is_stable(spec) and spec.service is not None and spec.service.per_pod is True


def _slot_service(cr: Object, spec: MemcachedSpec, name: str) -> Object:
    """The Service of a slot: clients reach the slot's pod at its fixed address, ready or not.

    Without the annotations of the spec: other software would act on each of these Services.
    """
    content: Object = {"type": "ClusterIP", "externalIPs": [], "publishNotReadyAddresses": True}
    built = _service(cr, spec, content, Service(labels=spec.service.labels if spec.service else {}), name)
    selector = {**built["spec"]["selector"], POD_NAME_LABEL: name}
    return {**built, "spec": {**built["spec"], "selector": selector}}


def _service(
    cr: Object, spec: MemcachedSpec, content: Mapping[str, Any], given: Service, name: str | None = None
) -> Object:
    port = {"name": PORT_NAME, "port": spec.container_port, "protocol": "TCP", "targetPort": PORT_NAME}
    built = children.service(cr, APP_NAME, COMPONENT, {**content, "ports": [port]}, name)
    return children.with_metadata(built, given.labels, given.annotations)
