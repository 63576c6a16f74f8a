import msgspec

from memcached_api import conditions
from memcached_api.conditions import Condition
from memcached_api.memcached.types import CacheStatus, MemcachedStatus


def test_order_is_available_progressing_degraded():
    assert conditions.TYPES == ("Available", "Progressing", "Degraded")
    assert tuple(conditions.MEANINGS) == conditions.TYPES


def test_every_reason_has_a_meaning():
    assert all(each.meaning for reasons in conditions.MEANINGS.values() for each in reasons.values())


def test_status_is_encoded_with_kubernetes_field_names():
    condition = Condition("Available", "True", "MinimumReplicasAvailable", "3 of 3", "2026-01-01T00:00:00Z", 2)
    status = MemcachedStatus(2, 3, 3, "a=b", ["x-0"], [condition], CacheStatus("64Mi", "1Mi", 1024, 4), ["x-0.x:1"])
    assert msgspec.to_builtins(status) == {
        "observedGeneration": 2,
        "replicas": 3,
        "readyReplicas": 3,
        "selector": "a=b",
        "nodes": ["x-0"],
        "conditions": [
            {
                "type": "Available",
                "status": "True",
                "reason": "MinimumReplicasAvailable",
                "message": "3 of 3",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "observedGeneration": 2,
            }
        ],
        "cache": {"memory": "64Mi", "maxItemSize": "1Mi", "maxConnections": 1024, "threads": 4},
        "servers": ["x-0.x:1"],
    }
