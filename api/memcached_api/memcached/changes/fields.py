"""The fields that a change of a Memcached concerns, and their values as the pods use them."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from memcached_api.effects import changed
from memcached_api.memcached.memory import megabytes
from memcached_api.memcached.requirements import requirements
from memcached_api.memcached.resolved import ports, resolved, security_context
from memcached_api.memcached.types import MEMCACHED, MemcachedSpec, needs_agent, warm_up_of
from memcached_api.quantity import parse_quantity
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
        ("spec.cache.extstore", [new.cache.extstore, old.cache.extstore]),
    ):
        if name.startswith(f"{section}.") and None in parts:
            return section
    return name


def values(spec: MemcachedSpec) -> dict[str, object]:
    """The values of the fields whose change can replace the pods, normalized for comparison."""
    without_unused = spec if needs_agent(spec) else replace(spec, agent=None)
    return MEMCACHED.values(without_unused) | {"spec.cache.memory": resolved(spec).memory}


def used(spec: MemcachedSpec) -> dict[str, object]:
    """The values as the pods use them, by the same names."""
    derived: dict[str, object] = {
        "spec.resources": _numbers(requirements(spec)),
        "spec.cache.memory": megabytes(resolved(spec).memory),
        "spec.monitoring.enabled": needs_agent(spec),
        "spec.tls.port": ports(spec).tls,
        "spec.podTemplate.spec.securityContext": security_context(spec),
    }
    if needs_agent(spec):
        derived["spec.agent.resources"] = _numbers(agent_requirements(spec.agent and spec.agent.resources))
    return values(spec) | derived


def _numbers(resources: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, object]]:
    """Amounts as numbers: a derived limit has the notation of the request from which it is derived."""
    return {part: {name: parse_quantity(each) for name, each in amounts.items()} for part, amounts in resources.items()}
