"""When the pods of a MemcachedProxy have an agent."""

from collections.abc import Mapping
from typing import Any, Final

from memcached_api.values import is_object

NO_AGENT: Final = (
    "!has(self.tls) && (!has(self.monitoring) || (has(self.monitoring.enabled) && !self.monitoring.enabled))"
)
"""CEL: a spec needs no agent."""


def asks_for_agent(spec: Mapping[str, Any]) -> bool:
    """Whether a spec that is not decoded, and may be invalid, needs an agent."""
    monitoring = spec.get("monitoring")
    return is_object(spec.get("tls")) or (is_object(monitoring) and monitoring.get("enabled") is not False)
