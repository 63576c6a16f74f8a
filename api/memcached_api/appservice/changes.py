"""The effect of a change of each field on the pods; a test compares it with the builders of the operator."""

from memcached_api.appservice.ports import listening_ports
from memcached_api.appservice.types import AppServiceSpec
from memcached_api.changes import changed
from memcached_api.kubernetes import canonical_env, comparable_resources


def replaces_pods(new: AppServiceSpec, old: AppServiceSpec) -> list[str]:
    """The changed fields whose change replaces the pods. Both specs must be valid."""
    return changed(values(new), values(old))


def values(spec: AppServiceSpec) -> dict[str, object]:
    """The values of the fields whose change replaces the pods, normalized for comparison."""
    return {
        "spec.image": spec.image,
        "spec.envs": [canonical_env(env) for env in spec.envs],
        "spec.resources": comparable_resources(spec.resources),
        "spec.ports": listening_ports(spec.ports),
    }
