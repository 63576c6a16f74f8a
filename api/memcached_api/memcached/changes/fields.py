"""The fields that a change of a Memcached concerns, and their values as the pods use them."""

from collections.abc import Iterable, Mapping

from memcached_api.changes import changed
from memcached_api.kubernetes import comparable_resources
from memcached_api.memcached.memory import megabytes
from memcached_api.memcached.requirements import requirements
from memcached_api.memcached.resolved import ports, resolved, verbosity
from memcached_api.memcached.tls import TLS
from memcached_api.memcached.types import (
    MemcachedSpec,
    has_insight,
    needs_agent,
    restarts_warm,
    serves_https,
    warm_up_of,
)
from memcached_api.memcached.warm_up import WarmUp, setting
from memcached_api.quantity import parse_quantity
from memcached_api.shared.changes import agent_values, template_values
from memcached_api.shared.monitoring import is_enabled
from memcached_api.shared.resources import agent_requirements


def changed_fields(new: MemcachedSpec, old: MemcachedSpec) -> list[str]:
    """The changed fields of `values` if the pods use anything else after the change, otherwise none.

    Both specs must be valid. Requests and limits are derived from several fields, and memcached uses whole mebibytes:
    if all that the pods use is the same, a different value keeps them.
    """
    names = changed(values(new), values(old)) if changed(used(new), used(old)) else []
    if needs_agent(new) != needs_agent(old):
        names = [name for name in names if not name.startswith("spec.agent.")]  # it follows from the other fields
    return names


def sections(names: Iterable[str], new: MemcachedSpec, old: MemcachedSpec) -> list[str]:
    """The names of fields, each once. A section that is added or removed as a whole has one name."""
    return list(dict.fromkeys(_section(name, new, old) for name in names))


def _section(name: str, new: MemcachedSpec, old: MemcachedSpec) -> str:
    """The name of a field, or of the section that contains it if this is added or removed as a whole."""
    for section, parts in (
        ("spec.tls", [new.tls, old.tls]),
        ("spec.auth", [new.auth, old.auth]),
        ("spec.rollout.warmUp", [warm_up_of(new), warm_up_of(old)]),
    ):
        if name.startswith(f"{section}.") and None in parts:
            return section
    return name


def values(spec: MemcachedSpec) -> dict[str, object]:
    """The values of the fields whose change can replace the pods, normalized for comparison."""
    memory, settings, item_size = resolved(spec)
    return {
        "spec.containerPort": spec.container_port,
        "spec.image": spec.image,
        "spec.imagePullPolicy": spec.image_pull_policy,
        "spec.imagePullSecrets": spec.image_pull_secrets,
        "spec.resources": comparable_resources(spec.resources),
        "spec.cache.memory": memory,
        "spec.cache.maxItemSize": item_size,
        "spec.cache.maxConnections": settings.connections,
        "spec.cache.threads": settings.threads,
        "spec.cache.evictions": spec.cache.evictions is not False,
        "spec.cache.verbosity": verbosity(spec),
        "spec.cache.extraArgs": spec.cache.extra_args,
        "spec.cache.warmRestart": restarts_warm(spec),
        **template_values(spec.pod_template),
        "spec.rollout.restartedAt": (spec.rollout and spec.rollout.restarted_at) or "",
        **_warm_up(warm_up_of(spec)),
        "spec.monitoring.enabled": is_enabled(spec.monitoring),
        "spec.monitoring.tls.enabled": serves_https(spec),
        "spec.monitoring.insight.enabled": has_insight(spec),
        "spec.auth.secretName": spec.auth and spec.auth.secret_name,
        **_tls(spec.tls),
        **agent_values(spec.agent if needs_agent(spec) else None),
    }


def _warm_up(warm_up: WarmUp | None) -> dict[str, object]:
    """The values of `spec.rollout.warmUp`."""
    ratio, timeout, requests = setting(warm_up).split(",") if warm_up is not None else (None, None, None)
    return {
        "spec.rollout.warmUp.hitRatio": ratio,
        "spec.rollout.warmUp.timeout": timeout,
        "spec.rollout.warmUp.minRequests": requests,
    }


def _tls(tls: TLS | None) -> dict[str, object]:
    """The values of `spec.tls`."""
    return {
        "spec.tls.secretName": tls and tls.secret_name,
        "spec.tls.clientAuth": (tls and tls.client_auth) or "None",
        "spec.tls.clientCASecretName": tls and tls.client_ca_secret_name,
        "spec.tls.port": tls and tls.port,
        "spec.tls.plaintext": (tls and tls.plaintext) or "Disabled",
        "spec.tls.minVersion": (tls and tls.min_version) or "1.2",
    }


def used(spec: MemcachedSpec) -> dict[str, object]:
    """The values as the pods use them, by the same names."""
    derived: dict[str, object] = {
        "spec.resources": _numbers(requirements(spec)),
        "spec.cache.memory": megabytes(resolved(spec).memory),
        "spec.monitoring.enabled": needs_agent(spec),
        "spec.tls.port": ports(spec).tls,
    }
    if needs_agent(spec):
        derived["spec.agent.resources"] = _numbers(agent_requirements(spec.agent and spec.agent.resources))
    return values(spec) | derived


def _numbers(resources: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, object]]:
    """Amounts as numbers: a derived limit has the notation of the request from which it is derived."""
    return {part: {name: parse_quantity(each) for name, each in amounts.items()} for part, amounts in resources.items()}
