"""The Deployment of a MemcachedProxy.

The pod template is stable across releases, as for a Memcached: for the same spec and the same slots, every later
release builds an identical template (docs/decisions/template-stability.md). The golden files check this.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from memcached_api.annotations import HANDLER_ANNOTATION, RING_ANNOTATION, ROUTES_ANNOTATION
from memcached_api.images import Images
from memcached_api.memcachedproxy.limits import descriptors
from memcached_api.memcachedproxy.resolved import buffers, requirements, settings
from memcached_api.memcachedproxy.types import MemcachedProxySpec, Rollout, needs_agent
from memcached_api.shared.rules.placing import ZERO
from memcached_operator.kube.resource import Object
from memcached_operator.memcachedproxy.desired import scaling
from memcached_operator.memcachedproxy.desired.routes import routes
from memcached_operator.memcachedproxy.references import Slots
from memcached_operator.parts import agent, pods
from memcached_operator.parts.agent import MOUNT_PATH, VOLUME
from memcached_operator.parts.placement import strategy
from memcached_operator.parts.pods import RESTRICTED, drain
from memcached_operator.parts.ring import Ring
from memcached_operator.parts.tls import (
    TLS_PATH,
    TLS_VOLUME,
    agent_tls_options,
    local_port,
    mount,
    tls_options,
    tls_volume,
)
from memcached_operator.parts.workloads import children

APP_NAME: Final = "memcached-proxy"
COMPONENT: Final = "proxy"
CONTAINER: Final = "proxy"
PORT_NAME: Final = "memcached"

ROUTES_FILE: Final = "routes"
ITEM_MEMORY: Final = 2
"""MiB for items, of which a proxy has none: the lowest value."""

AGENT_LISTENER: Final = "notls:proto[ascii]"
"""The tags of the agent's listener, in this order: it is no proxy, so it accepts the command that reloads certificates.
"""

DRAIN_SECONDS: Final = 5
"""Seconds from the start of a pod's termination to SIGTERM. During this time nodes may still send new connections."""

LIVENESS_DELAY, LIVENESS_PERIOD, READINESS_PERIOD = 30, 10, 2
"""Seconds. The port opens only after the routes are read and the names of the servers are resolved. A rollout waits for
readiness, and two rings serve until then."""

DNS_OPTIONS: Final = {"ndots": "1", "timeout": "1", "attempts": "1"}
"""A look-up blocks a thread: by default, for up to 20 s if the DNS server does not respond."""

MAX_SURGE: Final = "100%"
"""All new pods start at once: as long as pods with two rings serve, a key can have two servers."""


class Servers(NamedTuple):
    """What the pods know of the servers: the addresses of the slots, and the largest item in bytes."""

    slots: Slots
    item_size: int


def deployment(cr: Object, spec: MemcachedProxySpec, images: Images, servers: Servers, ring: Ring) -> Object:
    """Build the Deployment of `spec.size` pods. `ring`: the slots in use."""
    containers = [
        _container(spec, images.memcached, servers, ring),
        *([_agent(spec, images.agent)] if needs_agent(spec) else []),
    ]
    selector = children.selector(cr, APP_NAME)
    pod = pods.restricted_pod(spec.pod_template, selector, containers, spec.image_pull_secrets)
    if sweeps := scaling.sweep(spec, images.agent, servers.slots, ring):
        pod["initContainers"] = sweeps
    dns = {"options": [{"name": name, "value": value} for name, value in DNS_OPTIONS.items()]}
    built = children.deployment(
        cr, APP_NAME, COMPONENT, spec.size, {**pod, "dnsConfig": dns, "volumes": list(_volumes(spec, ring))}
    )
    annotations = {RING_ANNOTATION: str(ring), **_routes(spec, servers, ring)}
    built = pods.with_pod_metadata(built, spec.pod_template, spec.rollout, annotations)
    # Without old ReplicaSets: `kubectl rollout undo` would bring an old ring back.
    return {**built, "spec": {**built["spec"], **_strategy(spec.rollout), "revisionHistoryLimit": 0}}


def _routes(spec: MemcachedProxySpec, servers: Servers, ring: Ring) -> dict[str, str]:
    """The annotations with the routes, and in a phase of a change of size with their handler."""
    given = settings(spec), buffers(spec, servers.item_size)
    if ring.move is not None:
        return scaling.annotations(servers.slots, ring.move, *given)
    return {ROUTES_ANNOTATION: routes(servers.slots, ring.servers, *given)}


def _strategy(rollout: Rollout | None) -> dict[str, Any]:
    """The fields of the Deployment's spec about rollouts, with the defaults of this kind."""
    given, additional = rollout or Rollout(), surge(rollout)
    unavailable = (1 if additional in ZERO else 0) if given.max_unavailable is None else given.max_unavailable
    return strategy(msgspec.structs.replace(given, max_surge=additional, max_unavailable=unavailable))


def surge(rollout: Rollout | None) -> int | str:
    """The additional pods during a rollout: a number, or a percentage."""
    return MAX_SURGE if rollout is None or rollout.max_surge is None else rollout.max_surge


def _container(spec: MemcachedProxySpec, image: str, servers: Servers, ring: Ring) -> Object:
    probe = {"tcpSocket": {"port": PORT_NAME}}
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": image,
        "command": command(spec, ring),
        "ports": [{"name": PORT_NAME, "containerPort": spec.port, "protocol": "TCP"}],
        "resources": requirements(spec, servers.item_size),
        "livenessProbe": {**probe, "initialDelaySeconds": LIVENESS_DELAY, "periodSeconds": LIVENESS_PERIOD},
        "readinessProbe": {**probe, "periodSeconds": READINESS_PERIOD},
        "lifecycle": drain(DRAIN_SECONDS),
        "securityContext": RESTRICTED,
        "volumeMounts": [{"name": VOLUME, "mountPath": MOUNT_PATH, "readOnly": True}, *_tls_mounts(spec)],
    }
    return container if spec.image_pull_policy is None else container | {"imagePullPolicy": spec.image_pull_policy}


def command(spec: MemcachedProxySpec, ring: Ring) -> list[str]:
    """The command line. Flags and values are separate arguments, because memcached parses `-m=64` as 0.

    `ring`: the slots in use.
    """
    effective = settings(spec)
    handler = "" if ring.move is None else f":{MOUNT_PATH}/{scaling.HANDLER_FILE}"
    return [
        "memcached",
        *("-p", str(spec.port)),
        *("-U", "0"),
        *("-t", str(effective.threads)),
        *("-c", str(descriptors(effective.connections, effective.threads, ring.servers))),
        *("-m", str(ITEM_MEMORY)),
        *("-o", f"proxy_config=routelib{handler},proxy_arg={MOUNT_PATH}/{ROUTES_FILE}"),
        *(tls_options(spec.tls, spec.port, loopback=AGENT_LISTENER) if spec.tls is not None else ()),
    ]


def _agent(spec: MemcachedProxySpec, image: str) -> Object:
    """The agent: it serves metrics, and makes memcached reload certificates."""
    options = [
        agent.address_option(local_port(spec.port, spec.tls)),
        *(agent_tls_options(spec.port) if spec.tls is not None else ()),
    ]
    return agent.agent(image, options, spec.agent and spec.agent.resources, _tls_mounts(spec))


def _tls_mounts(spec: MemcachedProxySpec) -> list[Object]:
    return [] if spec.tls is None else [mount(TLS_VOLUME, TLS_PATH)]


def _volumes(spec: MemcachedProxySpec, ring: Ring) -> Iterator[Object]:
    """The volume with the routes and, for the agent, all annotations of the pod; and that of the certificate."""
    items = [annotation_item(ROUTES_FILE, ROUTES_ANNOTATION)]
    if ring.move is not None:
        items.append(annotation_item(scaling.HANDLER_FILE, HANDLER_ANNOTATION))
    yield agent.volume(*items) if needs_agent(spec) else {"name": VOLUME, "downwardAPI": {"items": items}}
    if spec.tls is not None:
        yield tls_volume(spec.tls)


def annotation_item(file: str, annotation: str) -> Object:
    """The item of the volume with an annotation of the pod as a file."""
    path = f"metadata.annotations['{annotation}']"
    return {"path": file, "fieldRef": {"apiVersion": "v1", "fieldPath": path}}
