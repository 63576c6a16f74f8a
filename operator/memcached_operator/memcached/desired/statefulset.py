"""The StatefulSet of a Memcached with `identity: Stable`: one slot per pod, with a name that its next pod inherits."""

from typing import Any

from memcached_api.images import Images
from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.desired.pods import APP_NAME, COMPONENT, with_pod_metadata, workload_pod
from memcached_operator.parts.workloads import children


def statefulset(cr: Object, spec: MemcachedSpec, images: Images) -> Object:
    """Build the StatefulSet of `spec.size` pods, which start together and are updated by the operator."""
    pods = workload_pod(cr, spec, images)
    # The DNS names of the slots end with that of the headless Service, which has the object's name.
    built = children.statefulset(cr, APP_NAME, COMPONENT, spec.size, pods, cr["metadata"]["name"])
    return with_pod_metadata({**built, "spec": {**built["spec"], **_updates(spec)}}, spec)


def _updates(spec: MemcachedSpec) -> dict[str, Any]:
    """The fields about updates. The operator updates the pods itself: a StatefulSet would replace each of them."""
    return {
        "podManagementPolicy": "Parallel",
        # rollingUpdate is null, so that preparation_patch removes the value of another client.
        "updateStrategy": {"type": "OnDelete", "rollingUpdate": None},
        "minReadySeconds": (spec.rollout and spec.rollout.min_ready_seconds) or 0,
        "ordinals": {"start": 0},  # another client's start would rename all slots
    }
