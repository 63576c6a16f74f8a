"""Decides whether memcached needs more memory, and whether the pod is ready for its part."""

from typing import Final, Literal

from memcached_agent.memcached.stats import Stats, number

MEBIBYTE: Final = 2**20
HOLD: Final = 12.0
"""Seconds for which the pod is not ready after its target has changed.

The controller waits until the pod's condition Ready has become False and True again. The kubelet probes every 5 s, so
that it notices at least one failure, also if one probe is late.
"""

Step = Literal["raise", "unknown", "hold", "done"]
"""raise: memcached has less than the target. unknown: its limit is not known, and it never had the target. hold: it has
the target, which has just changed. done: nothing is left to do."""


def limit_of(stats: Stats) -> int | None:
    """Bytes that items may use, in the reply to `stats`; None if it does not say."""
    found = number(stats.get("limit_maxbytes"))
    return None if found is None else int(found)


def is_short(limit: int | None, target: int) -> bool:
    """Whether memcached has fewer bytes, as far as is known, than the target in MiB."""
    return limit is not None and limit < target * MEBIBYTE


def decide(target: int, recorded: int | None, limit: int | None, waited: float) -> Step:
    """What is left to do for a target in MiB.

    `recorded`: the target that was in effect last; None before the first. `limit`: that of memcached in bytes, None if
    memcached does not reply. `waited`: seconds since the target was noticed. Memory never shrinks: a target below the
    recorded one is in effect at once.
    """
    if is_short(limit, target):
        return "raise"
    if recorded is not None and target <= recorded:
        return "done"
    if limit is None:
        return "unknown"
    return "hold" if recorded is not None and waited < HOLD else "done"


def sentence(step: Step, target: int, limit: int | None, waited: float) -> str:
    """What is missing until the pod is ready; empty if nothing is."""
    if step == "raise":
        return f"memory not raised yet: memcached has {(limit or 0) // MEBIBYTE} MiB, {target} MiB needed"
    if step == "unknown":
        return f"memory not raised yet: memcached does not report its limit, {target} MiB needed"
    if step == "hold":
        return f"memory was raised to {target} MiB; ready in {max(1, round(HOLD - waited))} s"
    return ""
