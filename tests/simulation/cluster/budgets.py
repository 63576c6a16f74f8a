"""The controller of PodDisruptionBudgets."""

from memcached_operator.kube.resource import PODS, Key, nested_list, nested_map
from simulation.cluster.access import Access, amount, is_deleted, is_ready, with_condition


def sync(access: Access, key: Key) -> float | None:
    """Write the status of a budget."""
    live = access.get(key)
    if live is None or is_deleted(live):
        return None
    wanted = nested_map(live, "spec", "selector", "matchLabels")
    pods = [access.get(each) or {} for each in access.keys(PODS, key.namespace)]
    pods = [pod for pod in pods if wanted.items() <= (pod["metadata"].get("labels") or {}).items()]
    healthy = sum(map(is_ready, pods))
    spec = live["spec"]
    if "minAvailable" in spec:
        least = amount(spec["minAvailable"], len(pods), up=True)
    else:
        least = max(len(pods) - amount(spec.get("maxUnavailable"), len(pods), up=True), 0)
    allowed = max(healthy - least, 0)
    old = nested_list(live, "status", "conditions")
    reason = "SufficientPods" if allowed else "InsufficientPods"
    conditions = with_condition(old, "DisruptionAllowed", str(allowed > 0), reason, "", access.time())
    conditions = [{name: text for name, text in each.items() if name != "lastUpdateTime"} for each in conditions]
    status = {
        "observedGeneration": live["metadata"]["generation"],
        "currentHealthy": healthy,
        "desiredHealthy": least,
        "expectedPods": len(pods),
        "disruptionsAllowed": allowed,
        "conditions": conditions,
    }
    access.put_status(live, status)
    return None
