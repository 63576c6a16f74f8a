"""The pods of a Memcached.

The pod template is stable across releases: for the same spec, every later release must build an identical template.
Otherwise an upgrade of the operator restarts all caches (docs/decisions/template-stability.md). The golden files check
this.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from memcached_api.annotations import WARM_UP_ANNOTATION
from memcached_api.images import Images
from memcached_api.memcached.memory import DEFAULT_ITEM_SIZE, DEFAULTS, megabytes
from memcached_api.memcached.options import arguments
from memcached_api.memcached.requirements import requirements
from memcached_api.memcached.resolved import Ports, Resolved, ports, resolved, security_context, verbosity
from memcached_api.memcached.types import MemcachedSpec, needs_agent, restarts_warm, warm_up_of
from memcached_api.memcached.warm_up import setting
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.desired import extstore, secrets, warm_restart
from memcached_operator.memcached.desired.agent import agent, volumes
from memcached_operator.parts import pods
from memcached_operator.parts.pods import RESTRICTED
from memcached_operator.parts.workloads import children
from memcached_operator.world.pod import Pod

APP_NAME = "memcached"
COMPONENT = "cache"
CONTAINER = "memcached"
PORT_NAME = "memcached"
TLS_PORT_NAME = "memcached-tls"
"""The names of the port without TLS and of the one with TLS, in pods and Services."""

DRAIN_SECONDS = 5
"""Seconds from the start of a pod's termination to SIGTERM. memcached closes client connections ~1 s after SIGTERM."""

DRAIN = pods.drain(DRAIN_SECONDS)
"""The lifecycle of memcached's container. One that keeps its items does not wait: it is stopped to start again."""

LIVENESS_DELAY, LIVENESS_PERIOD, READINESS_PERIOD = 30, 10, 5
"""Seconds. The probes open a TCP connection, which succeeds even while memcached is at its connection limit."""

_VERBOSITY = ((), ("-v",), ("-vv",))
"""The options of each verbosity."""


def with_pod_metadata(workload: Object, spec: MemcachedSpec) -> Object:
    """A workload whose pods have the labels and annotations of the spec too."""
    warm_up = warm_up_of(spec)
    annotations = {} if warm_up is None else {WARM_UP_ANNOTATION: setting(warm_up)}
    given = {} if spec.pod_template is None else spec.pod_template.metadata.annotations
    annotations |= {name: value for name, value in extstore.annotations(spec).items() if name not in given}
    return pods.with_pod_metadata(workload, spec.pod_template, spec.rollout, annotations)


def workload_pod(cr: Object, spec: MemcachedSpec, images: Images) -> Object:
    """The pod spec: non-root containers with a read-only root file system, memcached and, if needed, the agent."""
    selector = children.selector(cr, APP_NAME)
    containers = [_container(spec, images.memcached)]
    added: Object = {}
    if needs_agent(spec):
        restarts = warm_restart.agent_options() if restarts_warm(spec) else []
        containers.append(agent(spec, images.agent, *restarts))
        added["volumes"] = [*_volumes(spec, selector), *secrets.volumes(spec)]
    if spec.auth is not None or restarts_warm(spec) or spec.cache.extstore is not None:
        added["shareProcessNamespace"] = True  # so that the agent can signal memcached
    if spec.cache.extstore is not None:
        added["securityContext"] = security_context(spec)
    return {**pods.restricted_pod(spec.pod_template, selector, containers, spec.image_pull_secrets), **added}


def _volumes(spec: MemcachedSpec, selector: dict[str, str]) -> Iterator[Object]:
    if spec.cache.extstore is not None:
        return chain(volumes(spec), [extstore.volume(spec.cache.extstore, selector)])
    if not restarts_warm(spec):
        return volumes(spec)
    return chain(volumes(spec, warm_restart.args_item()), [warm_restart.volume(spec)])


def _container(spec: MemcachedSpec, image: str) -> Object:
    served = named_ports(ports(spec))
    probe = {"tcpSocket": {"port": next(iter(served))}}  # without TLS if possible: TLS counts a probe as an error
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": image,
        "command": warm_restart.command(fixed_arguments(spec)) if restarts_warm(spec) else command(spec),
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in served.items()],
        "resources": requirements(spec),
        "livenessProbe": {**probe, "initialDelaySeconds": LIVENESS_DELAY, "periodSeconds": LIVENESS_PERIOD},
        "readinessProbe": {**probe, "periodSeconds": READINESS_PERIOD},
        "lifecycle": warm_restart.lifecycle() if restarts_warm(spec) else DRAIN,
        "securityContext": RESTRICTED,
    }
    if mounts := [*_mounts(spec), *secrets.mounts(spec)]:
        container["volumeMounts"] = mounts
    if spec.image_pull_policy is not None:
        container["imagePullPolicy"] = spec.image_pull_policy
    return container


def _mounts(spec: MemcachedSpec) -> list[Object]:
    if spec.cache.extstore is not None:
        return [extstore.MOUNT]
    return warm_restart.mounts() if restarts_warm(spec) else []


def command(spec: MemcachedSpec) -> list[str]:
    """The command line. Flags and values are separate arguments, because memcached parses `-m=64` as 0.

    memcached's own defaults are left out, except those that are part of every command line since release 0.1.0.
    """
    return ["memcached", *_memory(spec), *_port(spec), *_tuning(spec), *secrets.options(spec)]


def fixed_arguments(spec: MemcachedSpec) -> list[str]:
    """The arguments that need a new pod: where memcached listens, and for whom. They must never be missing."""
    return [*_port(spec), *secrets.options(spec)]


def changeable_arguments(spec: MemcachedSpec) -> list[str]:
    """The other arguments, with which memcached can be restarted in its pod. Their order is that of `command`."""
    return [*_memory(spec), *_tuning(spec)]


def _memory(spec: MemcachedSpec) -> list[str]:
    return ["-m", str(megabytes(resolved(spec).memory))]


def _port(spec: MemcachedSpec) -> list[str]:
    return ["-p", str(spec.container_port), "-U", "0"]  # UDP, which older images enable, allows amplification attacks


def _tuning(spec: MemcachedSpec) -> list[str]:
    return [
        "-o",
        "modern",
        *_VERBOSITY[verbosity(spec)],
        # Before -I: after it, `-o track_sizes` would reserve memory for each size of items up to the largest.
        *arguments(spec.cache.extra_args),
        *extstore.arguments(spec),
        *_options(resolved(spec)),
        *(["-M"] if spec.cache.evictions is False else []),
    ]


def _options(resolved_values: Resolved) -> Iterator[str]:
    """The options of the settings that differ from memcached's defaults."""
    settings = resolved_values.settings
    if resolved_values.item_size != DEFAULT_ITEM_SIZE:
        yield from ("-I", str(resolved_values.item_size))
    if settings.connections != DEFAULTS.connections:
        yield from ("-c", str(settings.connections))
    if settings.threads != DEFAULTS.threads:
        yield from ("-t", str(settings.threads))


def named_ports(ports: Ports) -> dict[str, int]:
    """The ports by name, that without TLS first."""
    named = ((PORT_NAME, ports.plain), (TLS_PORT_NAME, ports.tls))
    return {name: port for name, port in named if port is not None}


def template_ports(template: Object) -> Ports:
    """The ports of the memcached container in a pod template."""
    containers = (container for container in template["spec"]["containers"] if container["name"] == CONTAINER)
    return _ports((port.get("name"), port["containerPort"]) for each in containers for port in each.get("ports", ()))


def memcached_ports(pod: Pod) -> Ports:
    """The ports of the memcached container of a pod."""
    return _ports((port.name, port.container_port) for port in pod.container(CONTAINER).ports)


def _ports(found: Iterable[tuple[str | None, int]]) -> Ports:
    numbers = dict(found)
    return Ports(numbers.get(PORT_NAME), numbers.get(TLS_PORT_NAME))
