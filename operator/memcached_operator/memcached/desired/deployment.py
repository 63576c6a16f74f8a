"""The Deployment of a Memcached with `identity: Pooled`."""

from collections import Counter
from collections.abc import Iterable

from memcached_api.images import Images
from memcached_api.memcached.resolved import Ports, ports
from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.desired.pods import (
    APP_NAME,
    COMPONENT,
    memcached_ports,
    with_pod_metadata,
    workload_pod,
)
from memcached_operator.parts.placement import strategy
from memcached_operator.parts.workloads import children
from memcached_operator.world.pod import Pod, by_name


def deployment(cr: Object, spec: MemcachedSpec, images: Images) -> Object:
    """Build the Deployment of `spec.size` pods."""
    pods = workload_pod(cr, spec, images)
    built = with_pod_metadata(children.deployment(cr, APP_NAME, COMPONENT, spec.size, pods), spec)
    return {**built, "spec": {**built["spec"], **strategy(spec.rollout)}}


def pooled_ports(spec: MemcachedSpec, pods: Iterable[Pod]) -> Ports:
    """The ports of the pods: during a pause, those of most existing pods, otherwise those of the spec.

    A paused Deployment has the new pod template immediately, but its pods keep the old one.
    """
    if not (spec.rollout and spec.rollout.paused):
        return ports(spec)
    existing = by_name(pod for pod in pods if not pod.has_completed)
    counts = Counter(pod_ports for pod in existing if any(pod_ports := memcached_ports(pod)))
    return counts.most_common(1)[0][0] if counts else ports(spec)
