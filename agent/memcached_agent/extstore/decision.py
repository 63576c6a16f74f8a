"""Decides from probes of a volume whether it is writable, and whether memcached must be stopped. Pure functions."""

from typing import Final, Literal, NamedTuple

from memcached_agent.pod.processes import Process

Result = Literal["works", "broken", "denied", "full", "failed", "hangs"]
"""The result of a probe.

broken: the disk refused the write, or returned other bytes. denied: the agent may not write. full: no space is left.
failed: another error. hangs: the probe has not ended in time.
"""
CONFIRMED: Final = 2
"""Errors in a row after which memcached is stopped."""


class State(NamedTuple):
    """The state of a volume.

    `writable`: None until it is known. `errors`: of probes since the last one that worked, because of which memcached
    must be stopped.
    `worked`: whether a probe of this agent has worked. `stopped`: the process that got SIGTERM last.
    """

    writable: bool | None = None
    errors: int = 0
    worked: bool = False
    stopped: Process | None = None


def decide(previous: State, result: Result) -> State:
    """The state after a probe.

    memcached ignores failed writes, and then returns what an earlier item left in their place. A full or a hanging disk
    only causes misses. An agent that may not write although it never could is itself the reason, and memcached may
    still write.
    """
    if result == "works":
        return previous._replace(writable=True, errors=0, worked=True)
    if result == "hangs":  # the same probe has a result later
        return previous._replace(writable=False)
    if result == "broken" or (result == "denied" and previous.worked):
        errors = previous.errors + 1
        return previous._replace(writable=False if errors >= CONFIRMED else previous.writable, errors=errors)
    return previous._replace(writable=False)


def must_stop(state: State) -> bool:
    """Whether memcached must not run with the volume."""
    return state.errors >= CONFIRMED


def is_due(state: State, running: Process) -> bool:
    """Whether this memcached must get SIGTERM. Each start of memcached gets it once."""
    return must_stop(state) and running != state.stopped
