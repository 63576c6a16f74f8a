"""The metrics of the agent that tables show."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

_SAMPLE: Final = re.compile(r"^(\w+)(\{[^}\n]*\})? (\S+)$", re.MULTILINE | re.ASCII)
_LABEL: Final = re.compile(r'\{(\w+)="([^"]*)"\}')
_WARM: Final = "memcached_agent_warm"
_HIT_RATIO: Final = "memcached_agent_hit_ratio"
_TARGET: Final = "memcached_agent_target_hit_ratio"
_EXPIRATION: Final = "memcached_agent_certificate_expiration_timestamp_seconds"
_PREDICTED: Final = "memcached_agent_predicted_hit_ratio"
_BYTES: Final = "memcached_agent_predicted_memory_bytes"
_CLIFF: Final = "memcached_agent_predicted_hit_ratio_cliff"
_QUALITY: Final = "memcached_agent_insight_quality"
DAY: Final = 86400


@dataclass(frozen=True)
class Prediction:
    """The hit ratio, from 0 to 1, with a memory of `size` bytes. `cliff`: do not rely on it."""

    hit_ratio: float
    size: float
    cliff: bool = False


@dataclass(frozen=True)
class AgentMetrics:
    """The metrics of an agent. `warm`: from 0 to 1. `expires`: seconds since 1970. None: not reported.

    `predictions`: by the multiple of the present memory, such as `1`, `1.25` or `smaller`. `insight`: the quality of
    the last window, such as `good`; empty without `spec.monitoring.insight` and before the first window ends.
    """

    warm: float | None = None
    expires: float | None = None
    predictions: Mapping[str, Prediction] = field(default_factory=dict[str, Prediction])
    insight: str = ""

    def certificate_days(self, now: float) -> int | None:
        """Whole days until the certificate expires. Negative after it."""
        return None if self.expires is None else int((self.expires - now) // DAY)


def agent_metrics(text: str) -> AgentMetrics:
    """The metrics in a response of /metrics."""
    found = _SAMPLE.findall(text)
    samples = {name: value for name, labels, value in found if not labels}
    numbers = {name: _number(samples[name]) for name in (_WARM, _HIT_RATIO, _TARGET, _EXPIRATION) if name in samples}
    labeled = {name: _by_label(found, name) for name in (_PREDICTED, _BYTES, _CLIFF, _QUALITY)}
    quality = next((each for each, value in labeled[_QUALITY].items() if value == 1), "")
    return AgentMetrics(_warm(numbers), numbers.get(_EXPIRATION), _predictions(labeled), quality)


def _by_label(samples: Sequence[tuple[str, str, str]], metric: str) -> dict[str, float]:
    """The numbers of a metric with one label, by the value of this label."""
    found = {
        match[2]: _number(value)
        for name, labels, value in samples
        if name == metric and (match := _LABEL.fullmatch(labels))
    }
    return {label: value for label, value in found.items() if value is not None}


def _predictions(labeled: Mapping[str, Mapping[str, float]]) -> dict[str, Prediction]:
    sizes, cliffs = labeled[_BYTES], labeled[_CLIFF]
    return {
        memory: Prediction(ratio, sizes[memory], cliffs.get(memory) == 1)
        for memory, ratio in labeled[_PREDICTED].items()
        if memory in sizes
    }


def _warm(numbers: dict[str, float | None]) -> float | None:
    """The hit ratio of the last minute as a share of its target. 1 if the agent reports memcached as warm."""
    if numbers.get(_WARM) == 1:
        return 1.0
    ratio, target = numbers.get(_HIT_RATIO), numbers.get(_TARGET)
    if ratio is None or not target:
        return None if numbers.get(_WARM) is None else 0.0
    return min(1.0, ratio / target)


def _number(text: str) -> float | None:
    """A finite number: the container of a cache can run any image, and report anything."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
