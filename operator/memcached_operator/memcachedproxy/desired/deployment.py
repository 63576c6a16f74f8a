"""The Deployment of a MemcachedProxy.

The pod template is stable across releases, as for a Memcached: for the same spec and the same slots, every later
release builds an identical template (docs/decisions/template-stability.md). The golden files check this.
"""

from typing import Any, Final

import msgspec

from memcached_api.memcachedproxy.resolved import requirements, settings
from memcached_api.memcachedproxy.types import MemcachedProxySpec, Rollout
from memcached_api.shared.rules.placing import ZERO
from memcached_operator.kube.resource import Object
from memcached_operator.memcachedproxy.desired.routes import ROUTES_ANNOTATION, routes
from memcached_operator.memcachedproxy.references import Slots
from memcached_operator.memcachedproxy.ring import RING_ANNOTATION, Ring
from memcached_operator.shared import pods
from memcached_operator.shared.agent import MOUNT_PATH, VOLUME
from memcached_operator.shared.placement import strategy
from memcached_operator.shared.pods import RESTRICTED, drain
from memcached_operator.workloads import children

APP_NAME: Final = "memcached-proxy"
COMPONENT: Final = "proxy"
CONTAINER: Final = "proxy"
PORT_NAME: Final = "memcached"

ROUTES_FILE: Final = "routes"
ITEM_MEMORY: Final = 2
"""MiB for items, of which a proxy has none: the lowest value."""

DRAIN_SECONDS: Final = 5
"""Seconds from the start of a pod's termination to SIGTERM. During this time nodes may still send new connections."""

LIVENESS_DELAY, LIVENESS_PERIOD, READINESS_PERIOD = 30, 10, 2
"""Seconds. The port opens only after the routes are read and the names of the servers are resolved. A rollout waits for
readiness, and two rings serve until then."""

DNS_OPTIONS: Final = {"ndots": "1", "timeout": "1", "attempts": "1"}
"""A look-up blocks a thread: by default, for up to 20 s if the DNS server does not respond."""

MAX_SURGE: Final = "100%"
"""All new pods start at once: as long as pods with two rings serve, a key can have two servers."""


def deployment(cr: Object, spec: MemcachedProxySpec, image: str, slots: Slots, ring: Ring) -> Object:
    """Build the Deployment of `spec.size` pods. `slots`: the addresses of the slots. `ring`: the slots in use."""
    pod = pods.restricted_pod(
        spec.pod_template, children.selector(cr, APP_NAME), [_container(spec, image)], spec.image_pull_secrets
    )
    dns = {"options": [{"name": name, "value": value} for name, value in DNS_OPTIONS.items()]}
    built = children.deployment(cr, APP_NAME, COMPONENT, spec.size, {**pod, "dnsConfig": dns, "volumes": [_volume()]})
    annotations = {
        RING_ANNOTATION: str(ring),
        ROUTES_ANNOTATION: routes(slots, ring.servers, settings(spec)),
    }
    built = pods.with_pod_metadata(built, spec.pod_template, spec.rollout, annotations)
    # Without old ReplicaSets: `kubectl rollout undo` would bring an old ring back.
    return {**built, "spec": {**built["spec"], **_strategy(spec.rollout), "revisionHistoryLimit": 0}}


def _strategy(rollout: Rollout | None) -> dict[str, Any]:
    """The fields of the Deployment's spec about rollouts, with the defaults of this kind."""
    given = rollout or Rollout()
    surge = MAX_SURGE if given.max_surge is None else given.max_surge
    unavailable = (1 if surge in ZERO else 0) if given.max_unavailable is None else given.max_unavailable
    return strategy(msgspec.structs.replace(given, max_surge=surge, max_unavailable=unavailable))


def _container(spec: MemcachedProxySpec, image: str) -> Object:
    probe = {"tcpSocket": {"port": PORT_NAME}}
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": image,
        "command": command(spec),
        "ports": [{"name": PORT_NAME, "containerPort": spec.port, "protocol": "TCP"}],
        "resources": requirements(spec),
        "livenessProbe": {**probe, "initialDelaySeconds": LIVENESS_DELAY, "periodSeconds": LIVENESS_PERIOD},
        "readinessProbe": {**probe, "periodSeconds": READINESS_PERIOD},
        "lifecycle": drain(DRAIN_SECONDS),
        "securityContext": RESTRICTED,
        "volumeMounts": [{"name": VOLUME, "mountPath": MOUNT_PATH, "readOnly": True}],
    }
    return container if spec.image_pull_policy is None else container | {"imagePullPolicy": spec.image_pull_policy}


def command(spec: MemcachedProxySpec) -> list[str]:
    """The command line. Flags and values are separate arguments, because memcached parses `-m=64` as 0."""
    effective = settings(spec)
    return [
        "memcached",
        *("-p", str(spec.port)),
        *("-U", "0"),
        *("-t", str(effective.threads)),
        *("-c", str(effective.connections)),
        *("-m", str(ITEM_MEMORY)),
        *("-o", f"proxy_config=routelib,proxy_arg={MOUNT_PATH}/{ROUTES_FILE}"),
    ]


def _volume() -> Object:
    """The volume with the routes, from the annotation of the pod."""
    path = f"metadata.annotations['{ROUTES_ANNOTATION}']"
    item = {"path": ROUTES_FILE, "fieldRef": {"apiVersion": "v1", "fieldPath": path}}
    return {"name": VOLUME, "downwardAPI": {"items": [item]}}
