"""The annotation that says how much memory memcached must have for its items."""

from typing import Final

from memcached_agent.pod.annotations import MAX_QUOTED, PREFIX

NAME: Final = "memory"
ANNOTATION: Final = f"{PREFIX}{NAME}"
MAX_TARGET: Final = 2**30
"""MiB: a PiB."""
MAX_DIGITS: Final = len(str(MAX_TARGET))


def parse_target(value: str) -> int:
    """The target in MiB, as memcached's option `-m`. Raises ValueError, with one sentence, if it is invalid."""
    is_number = value.isascii() and value.isdecimal() and len(value) <= MAX_DIGITS
    if not is_number or not 1 <= int(value) <= MAX_TARGET:
        quoted = repr(value[:MAX_QUOTED])
        text = f"the annotation {ANNOTATION} is invalid and has no effect: {quoted}"
        raise ValueError(f"{text}; use whole MiB from 1 to {MAX_TARGET}")
    return int(value)
