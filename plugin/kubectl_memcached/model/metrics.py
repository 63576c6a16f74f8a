"""The metrics of the agent that tables show."""

import re
from dataclasses import dataclass
from typing import Final

_SAMPLE: Final = re.compile(r"^(\w+)(\{[^}\n]*\})? (\S+)$", re.MULTILINE | re.ASCII)
_WARM: Final = "memcached_agent_warm"
_HIT_RATIO: Final = "memcached_agent_hit_ratio"
_TARGET: Final = "memcached_agent_target_hit_ratio"
_EXPIRATION: Final = "memcached_agent_certificate_expiration_timestamp_seconds"
DAY: Final = 86400


@dataclass(frozen=True)
class AgentMetrics:
    """The metrics of an agent. `warm`: from 0 to 1. `expires`: seconds since 1970. None: not reported."""

    warm: float | None = None
    expires: float | None = None

    def certificate_days(self, now: float) -> int | None:
        """Whole days until the certificate expires. Negative after it."""
        return None if self.expires is None else int((self.expires - now) // DAY)


def agent_metrics(text: str) -> AgentMetrics:
    """The metrics in a response of /metrics."""
    samples = {name: value for name, labels, value in _SAMPLE.findall(text) if not labels}
    numbers = {name: _number(samples[name]) for name in (_WARM, _HIT_RATIO, _TARGET, _EXPIRATION) if name in samples}
    return AgentMetrics(_warm(numbers), numbers.get(_EXPIRATION))


def _warm(numbers: dict[str, float | None]) -> float | None:
    """The hit ratio of the last minute as a share of its target. 1 if the agent reports memcached as warm."""
    if numbers.get(_WARM) == 1:
        return 1.0
    ratio, target = numbers.get(_HIT_RATIO), numbers.get(_TARGET)
    if ratio is None or not target:
        return None if numbers.get(_WARM) is None else 0.0
    return min(1.0, ratio / target)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
