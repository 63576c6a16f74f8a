"""The Deployment of a Memcached with `identity: Pooled`."""

from memcached_api.images import Images
from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.desired.placement import strategy
from memcached_operator.memcached.desired.pods import APP_NAME, COMPONENT, with_pod_metadata, workload_pod
from memcached_operator.workloads import children


def deployment(cr: Object, spec: MemcachedSpec, images: Images) -> Object:
    """Build the Deployment of `spec.size` pods."""
    pods = workload_pod(cr, spec, images)
    built = with_pod_metadata(children.deployment(cr, APP_NAME, COMPONENT, spec.size, pods), spec)
    return {**built, "spec": {**built["spec"], **strategy(spec.rollout)}}
