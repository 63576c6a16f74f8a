"""The scheduler and the kubelet: pods become ready immediately, as those of the control plane of the tests."""

from typing import Final

from memcached_api.quantity import parse_quantity
from memcached_operator.kube.resource import Key, Object, nested_map
from simulation.cluster.access import Access, is_deleted

NODE: Final = "node-1"
CPUS: Final = 1000
"""Of the node, as of the simulated one of the tests' control plane."""
_DOES_NOT_FIT: Final = "0/1 nodes are available: 1 {}. no new claims to deallocate, preemption: 0/1 nodes are available"


def sync(access: Access, key: Key) -> float | None:
    """Schedule a pod, run it, or remove it."""
    pod = access.get(key)
    if pod is None:
        return None
    if is_deleted(pod):
        if not pod["metadata"].get("finalizers"):
            access.remove(key)
        return None
    if nested_map(pod, "status").get("phase", "Pending") != "Pending":
        return None
    if pod["spec"].get("nodeName"):
        _run(access, pod)
    else:
        _schedule(access, pod)
    return None


def _schedule(access: Access, pod: Object) -> None:
    """Bind a pod to the node, or report once that it does not fit."""
    status: Object = pod.get("status") or {}
    conditions: list[Object] = status.get("conditions") or []
    if any(each["type"] == "PodScheduled" for each in conditions):
        return
    problem = _problem(pod)
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": access.time()}
    if problem:
        condition |= {"status": "False", "reason": "Unschedulable", "message": _DOES_NOT_FIT.format(problem)}
    status = {**status, "phase": "Pending", "conditions": [*conditions, condition]}
    if problem:
        access.put_status(pod, status)
    else:
        access.put({**pod, "spec": {**pod["spec"], "nodeName": NODE}, "status": status}, "binding")


def _problem(pod: Object) -> str:
    """Why no node takes the pod; empty if one does."""
    if pod["spec"].get("nodeSelector"):
        return "node(s) didn't match Pod's node affinity/selector"
    cpus = [nested_map(each, "resources", "requests").get("cpu", "0") for each in pod["spec"]["containers"]]
    return "Insufficient cpu" if sum(parse_quantity(str(each)) for each in cpus) > CPUS else ""


def _run(access: Access, pod: Object) -> None:
    at = access.time()
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": at} for kind in _CONDITIONS]
    status: Object = {
        **nested_map(pod, "status"),
        "phase": "Running",
        "startTime": at,
        "conditions": [*nested_map(pod, "status").get("conditions", ()), *conditions],
        "containerStatuses": [_container(each, at) for each in pod["spec"]["containers"]],
        "podIP": f"10.0.{access.chance.randrange(250)}.{access.chance.randrange(250)}",
    }
    access.put_status(pod, status)


_CONDITIONS: Final = ("Initialized", "ContainersReady", "Ready")


def _container(spec: Object, at: str) -> Object:
    return {
        "name": spec["name"],
        "image": spec["image"],
        "imageID": "",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": at}},
    }
