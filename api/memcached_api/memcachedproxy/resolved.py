"""What follows from a spec: the settings in effect, and which fields a change of the pods concerns."""

from decimal import Decimal
from typing import NamedTuple

from memcached_api.changes import changed
from memcached_api.kubernetes import comparable_resources
from memcached_api.memcachedproxy import limits
from memcached_api.memcachedproxy.limits import Load
from memcached_api.memcachedproxy.types import MemcachedProxySpec, Timeouts, needs_agent
from memcached_api.quantity import canonical_resource, parse_quantity
from memcached_api.shared.changes import agent_values, template_values
from memcached_api.shared.monitoring import is_enabled
from memcached_api.shared.resources import ResourceList, complete, limits_and_requests


class Settings(NamedTuple):
    """The settings of memcached, including defaults. Timeouts are in seconds."""

    threads: int
    connections: int
    connect_timeout: Decimal
    read_timeout: Decimal


def settings(spec: MemcachedProxySpec) -> Settings:
    """The settings of a valid spec."""
    timeouts = spec.timeouts or Timeouts()
    return Settings(
        limits.DEFAULT_THREADS if spec.threads is None else spec.threads,
        limits.DEFAULT_CONNECTIONS if spec.max_connections is None else spec.max_connections,
        limits.seconds(timeouts.connect or limits.DEFAULT_TIMEOUT),
        limits.seconds(timeouts.read or limits.DEFAULT_TIMEOUT),
    )


def load_of(spec: MemcachedProxySpec) -> Load:
    """The settings on which the memory depends."""
    effective = settings(spec)
    return Load(effective.connections, effective.threads, spec.tls is not None)


def requirements(spec: MemcachedProxySpec, item_size: int) -> dict[str, ResourceList]:
    """The `resources` of the container in canonical form. Values from the spec take precedence.

    `item_size`: the largest item of the servers, in bytes.
    """
    memory = canonical_resource(limits.default_memory(load_of(spec), item_size))
    return complete(*limits_and_requests(spec.resources), limits.REQUEST_CPU, memory, memory)


def buffers(spec: MemcachedProxySpec, item_size: int) -> int:
    """The values in flight, in KiB, for which the memory limit of the container has space."""
    limit = requirements(spec, item_size)["limits"]["memory"]
    return limits.buffers(load_of(spec), parse_quantity(limit))


def changed_fields(new: MemcachedProxySpec, old: MemcachedProxySpec) -> list[str]:
    """The paths of the changed fields that replace the pods. Both specs must be valid."""
    return changed(_values(new), _values(old))


def _values(spec: MemcachedProxySpec) -> dict[str, object]:
    """The values of the fields whose change replaces the pods, normalized for comparison."""
    effective = settings(spec)
    return {
        "spec.memcachedRef.name": spec.memcached_ref.name,
        "spec.port": spec.port,
        "spec.image": spec.image,
        "spec.imagePullPolicy": spec.image_pull_policy,
        "spec.imagePullSecrets": spec.image_pull_secrets,
        "spec.resources": comparable_resources(spec.resources),
        "spec.threads": effective.threads,
        "spec.maxConnections": effective.connections,
        "spec.timeouts.connect": effective.connect_timeout,
        "spec.timeouts.read": effective.read_timeout,
        **template_values(spec.pod_template),
        "spec.rollout.restartedAt": (spec.rollout and spec.rollout.restarted_at) or "",
        "spec.monitoring.enabled": is_enabled(spec.monitoring),
        "spec.tls.secretName": spec.tls and spec.tls.secret_name,
        "spec.tls.clientAuth": (spec.tls and spec.tls.client_auth) or "None",
        "spec.tls.clientCASecretName": spec.tls and spec.tls.client_ca_secret_name,
        "spec.tls.minVersion": (spec.tls and spec.tls.min_version) or "1.2",
        **agent_values(spec.agent if needs_agent(spec) else None),
    }
