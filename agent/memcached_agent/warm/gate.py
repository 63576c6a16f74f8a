"""The gate of a pod: the annotation that says how warm its memcached must be, and until when to wait."""

from typing import Final, NamedTuple

from memcached_agent.pod import fields
from memcached_agent.pod.annotations import MAX_QUOTED, PREFIX

NAME: Final = "warm-up"
ANNOTATION: Final = f"{PREFIX}{NAME}"
EXAMPLE: Final = "hitRatio=80,timeout=900,minRequests=100"
MAX_VALUE: Final = 10**9
"""The largest value of a field: 31 years, or more gets than memcached answers in a minute."""


class Gate(NamedTuple):
    """When a pod is warm. `hit_ratio`: percent, 1 to 100; `timeout`: seconds; `min_requests`: gets per minute."""

    hit_ratio: int
    timeout: int
    min_requests: int


def parse_gate(value: str) -> Gate:
    """The gate in the value of the annotation. Raises ValueError, with one sentence, if it is invalid."""
    try:
        values = fields.parse_fields(value)
        gate = Gate(values.pop("hitRatio"), values.pop("timeout"), values.pop("minRequests"))
    except (KeyError, ValueError):
        raise ValueError(_invalid(value)) from None
    if values or not 1 <= gate.hit_ratio <= 100 or not 1 <= gate.timeout <= MAX_VALUE or gate.min_requests > MAX_VALUE:
        raise ValueError(_invalid(value))
    return gate


def _invalid(value: str) -> str:
    quoted = repr(value[:MAX_QUOTED])
    return f"the annotation {ANNOTATION} is invalid, so the pod counts as warm: {quoted}; use the form {EXAMPLE}"
