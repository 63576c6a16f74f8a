"""The annotation that says how much memory memcached must have for its items."""

from typing import Final

from memcached_agent.pod.annotations import whole_number

NAME: Final = "memory"
MAX_TARGET: Final = 2**30
"""MiB: a PiB."""


def parse_target(value: str) -> int:
    """The target in MiB, as memcached's option `-m`. Raises ValueError, with one sentence, if it is invalid."""
    return whole_number(NAME, value, 1, MAX_TARGET, "MiB")
