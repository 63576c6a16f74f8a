"""Objects and replies for the tests of the plugin: pods as the operator builds them."""

from typing import Any

import msgspec

from memcached_api.images import Images
from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.memcached.desired.deployment import deployment
from memcached_operator.memcached.desired.statefulset import statefulset

Object = dict[str, Any]

IMAGES = Images("docker.io/library/memcached:1.6.45", "localhost/agent:1")
NAMESPACE, NAME = "shop", "sessions"
RESOURCE = "memcacheds.cache.example.com"
PROXIES = "memcachedproxies.cache.example.com"
HEALTHY = {"Available": "True", "Progressing": "False", "Degraded": "False", "Ready": "True"}
REASONS = {"Available": "MinimumReplicasAvailable", "Progressing": "RolloutComplete"}
AUTH = {"secretName": "sessions-users"}
TLS = {"secretName": "sessions-tls"}


def memcached(spec: Object | None = None, states: dict[str, str] | None = None, **reasons: str) -> Object:
    """A Memcached of two pods with a status. `states`: of its conditions. `reasons`: by type of condition."""
    conditions = [
        {
            "type": kind,
            "status": state,
            "reason": reasons.get(kind) or REASONS.get(kind, "AsExpected"),
            "message": f"message of {reasons[kind]}" if kind in reasons else "",
            "lastTransitionTime": "2026-11-20T10:00:00Z",
        }
        for kind, state in (HEALTHY if states is None else states).items()
    ]
    status = {"observedGeneration": 1, "readyReplicas": 2, "conditions": conditions, "cache": {"memory": "64Mi"}}
    return {
        "apiVersion": "cache.example.com/v1",
        "kind": "Memcached",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "generation": 1, "uid": "u"},
        "spec": {"size": 2, "image": IMAGES.memcached, "identity": "Stable", **(spec or {})},
        "status": status,
    }


def proxy(name: str = "front", slots: int = 2, states: dict[str, str] | None = None, **reasons: str) -> Object:
    """A MemcachedProxy of two pods in front of the Memcached, with a status. `slots`: those in use."""
    base = memcached(None, states, **reasons)
    status = {
        "observedGeneration": 1,
        "readyReplicas": 2,
        "conditions": base["status"]["conditions"],
        "address": f"{name}.{NAMESPACE}.svc.cluster.local:11211",
        "caches": [{"name": NAME, "servers": slots}],
    }
    return {
        "apiVersion": "cache.example.com/v1alpha1",
        "kind": "MemcachedProxy",
        "metadata": {**base["metadata"], "name": name},
        "spec": {"memcachedRef": {"name": NAME}, "size": 2, "image": IMAGES.memcached},
        "status": status,
    }


def controller(kind: str, uid: str) -> list[Object]:
    """The owner references of a child. `uid`: that of its controller."""
    return [{"kind": kind, "uid": uid, "controller": True}]


def workloads(cr: Object) -> dict[str, list[Object]]:
    """The StatefulSet, or the Deployment and its ReplicaSet, by resource, as the operator builds them."""
    spec = msgspec.convert(cr["spec"], MemcachedSpec)
    build = statefulset if spec.identity == "Stable" else deployment
    found = build(cr, spec, IMAGES)
    found["metadata"] |= {"uid": "w", "ownerReferences": controller("Memcached", cr["metadata"]["uid"])}
    if found["kind"] == "StatefulSet":
        return {"statefulsets": [found]}
    meta: Object = {**found["metadata"], "ownerReferences": controller("Deployment", "d")}
    found["metadata"] |= {"uid": "d"}
    return {"deployments": [found], "replicasets": [{**found, "kind": "ReplicaSet", "metadata": meta}]}


def pod(number: int, cr: Object, node: str = "") -> Object:
    """A running pod as the operator builds it. Its controller is that of `workloads`."""
    spec = msgspec.convert(cr["spec"], MemcachedSpec)
    (workload,) = next(reversed(workloads(cr).values()))
    template = workload["spec"]["template"]
    name = f"{NAME}-{number}" if spec.identity == "Stable" else f"{NAME}-5c9bb8d9b8-x{number}k7q"
    statuses: list[Object] = [
        {"name": container["name"], "ready": True, "restartCount": 0, "state": {"running": {}}}
        for container in template["spec"]["containers"]
    ]
    return {
        "metadata": {
            **template["metadata"],
            "name": name,
            "namespace": NAMESPACE,
            "ownerReferences": controller(workload["kind"], "w"),
        },
        "spec": {**template["spec"], "nodeName": node or f"node-{number + 1}"},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": statuses,
        },
    }


def stats(**changed: int | str) -> str:
    """A reply to `stats`."""
    values: dict[str, int | str] = {
        "pid": 1,
        "uptime": 11520,
        "time": 1700000000,
        "version": "1.6.45",
        "curr_connections": 12,
        "max_connections": 1024,
        "reserved_fds": 20,
        "listen_disabled_num": 0,
        "cmd_get": 2000,
        "cmd_set": 300,
        "get_hits": 1740,
        "get_misses": 260,
        "touch_hits": 0,
        "touch_misses": 0,
        "bytes_read": 1000,
        "bytes_written": 2000,
        "limit_maxbytes": 67108864,
        "bytes": 27514634,
        "curr_items": 250,
        "total_items": 300,
        "evictions": 0,
        **changed,
    }
    return lines(values)


def lines(values: dict[str, Any]) -> str:
    """A reply with these values."""
    return "".join(f"STAT {name} {value}\r\n" for name, value in values.items()) + "END\r\n"


SETTINGS = lines({"maxconns": 1024, "verbosity": 1})
METRICS = """\
# HELP memcached_agent_warm Whether memcached is warm.
# TYPE memcached_agent_warm gauge
memcached_agent_warm 0
memcached_agent_hit_ratio 0.43
memcached_agent_target_hit_ratio 0.8
memcached_agent_certificate_expiration_timestamp_seconds 1700864000.5
memcached_slab_chunk_size_bytes{slab="1"} 96
"""
