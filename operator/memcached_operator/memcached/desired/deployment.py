"""The Deployment of a Memcached with `identity: Pooled`."""

from collections import Counter
from collections.abc import Iterable

from memcached_api.images import Images
from memcached_api.memcached.ports import Ports, ports
from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.desired.placement import strategy
from memcached_operator.memcached.desired.pods import (
    APP_NAME,
    COMPONENT,
    memcached_ports,
    with_pod_metadata,
    workload_pod,
)
from memcached_operator.workloads import children
from memcached_operator.workloads.pods import is_active


def deployment(cr: Object, spec: MemcachedSpec, images: Images) -> Object:
    """Build the Deployment of `spec.size` pods."""
    pods = workload_pod(cr, spec, images)
    built = with_pod_metadata(children.deployment(cr, APP_NAME, COMPONENT, spec.size, pods), spec)
    return {**built, "spec": {**built["spec"], **strategy(spec.rollout)}}


def pooled_ports(spec: MemcachedSpec, pods: Iterable[Object]) -> Ports:
    """The ports of the pods: during a pause, those that most existing pods have, otherwise those of the spec.

    A paused Deployment has the new pod template at once, but its pods do not.
    """
    if not (spec.rollout and spec.rollout.paused):
        return ports(spec)
    by_name = sorted(filter(is_active, pods), key=lambda pod: pod["metadata"]["name"])
    found = Counter(each for pod in by_name if any(each := memcached_ports(pod["spec"])))
    return max(found, key=found.__getitem__, default=ports(spec))
