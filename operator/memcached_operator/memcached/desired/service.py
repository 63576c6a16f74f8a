"""The Services of a Memcached: a headless one, because clients distribute keys over the pods themselves."""

from collections.abc import Iterator, Mapping
from typing import Any

from memcached_api.memcached.placing import Service
from memcached_api.memcached.resolved import Ports
from memcached_api.memcached.types import MemcachedSpec, is_stable
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.addresses import slot_name
from memcached_operator.memcached.desired.pods import APP_NAME, COMPONENT, named_ports
from memcached_operator.parts.workloads import children

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
"""The label that Kubernetes sets on each pod of a StatefulSet."""


def services(cr: Object, spec: MemcachedSpec, ports: Ports) -> Iterator[Object]:
    """Build the headless Service, whose DNS name has one address per ready pod, and those of the slots.

    `ports`: those of the pods, which can differ from the spec during a pause.
    """
    # The name of a slot has its pod's address also before the pod is ready: clients wait for the pod, not for DNS.
    stable = {"publishNotReadyAddresses": True} if is_stable(spec) else {}
    yield _service(cr, ports, {"clusterIP": "None", **stable}, spec.service or Service())
    if has_slot_services(spec):
        yield from (_slot_service(cr, spec, ports, slot_name(cr, slot)) for slot in range(spec.size))


def has_slot_services(spec: MemcachedSpec) -> bool:
    """Whether each slot has a Service of its own."""
    return is_stable(spec) and spec.service is not None and spec.service.per_pod is True


def _slot_service(cr: Object, spec: MemcachedSpec, ports: Ports, name: str) -> Object:
    """The Service of a slot: clients reach the slot's pod at its fixed address, ready or not.

    Without the annotations of the spec: other software would act on each of these Services.
    """
    content: Object = {"type": "ClusterIP", "externalIPs": [], "publishNotReadyAddresses": True}
    built = _service(cr, ports, content, Service(labels=spec.service.labels if spec.service else {}), name)
    selector = {**built["spec"]["selector"], POD_NAME_LABEL: name}
    return {**built, "spec": {**built["spec"], "selector": selector}}


def _service(cr: Object, ports: Ports, content: Mapping[str, Any], service: Service, name: str | None = None) -> Object:
    port_entries = [
        {"name": port_name, "port": port, "protocol": "TCP", "targetPort": port_name}
        for port_name, port in named_ports(ports).items()
    ]
    built = children.service(cr, APP_NAME, COMPONENT, {**content, "ports": port_entries}, name)
    return children.with_metadata(built, service.labels, service.annotations)
