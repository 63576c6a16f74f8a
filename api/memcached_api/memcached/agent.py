"""When the pods of a Memcached have an agent."""

from collections.abc import Mapping
from typing import Any

from memcached_api.values import is_object, nested_field


def asks_for_agent(spec: Mapping[str, Any]) -> bool:
    """Whether a spec that is not decoded, and may be invalid, needs an agent."""
    if any(is_object(nested_field(spec, *path)) for path in (("rollout", "warmUp"), ("cache", "extstore"))):
        return True
    if nested_field(spec, "cache", "warmRestart") is True:
        return True
    monitoring = spec.get("monitoring")
    monitored = is_object(monitoring) and monitoring.get("enabled") is not False
    return monitored or is_object(spec.get("tls")) or is_object(spec.get("auth"))
