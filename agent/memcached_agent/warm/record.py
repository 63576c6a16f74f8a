"""What is known about a memcached process, and about its predecessor in the pod. Survives restarts of the agent."""

from typing import Final, NamedTuple

from memcached_agent.memcached.stats import Stats, number
from memcached_agent.warm import fields
from memcached_agent.warm.window import MINUTE, Window

WHOLE: Final = 10_000
"""A hit ratio of 1: records have ratios in basis points, as all their values are integers."""
START_TOLERANCE: Final = 2
"""Seconds by which `time` minus `uptime` of one process may vary."""
MIN_REQUESTS: Final = 100
"""Gets of a minute whose hit ratio is typical for the slot: its standard error is at most 5 %."""


class Seen(NamedTuple):
    """A memcached process as `stats` shows it.

    `started` and `time`: seconds of memcached's clock. `cpu`: CPU time of the process in milliseconds. A restart sets
    it back, and `stats reset`, unlike the counters, does not.
    """

    pid: int
    started: int
    time: int
    cpu: int
    hits: int
    misses: int


class Record(NamedTuple):
    """A memcached process.

    `began`: when it began to warm up, in seconds of memcached's clock. `warm`: once true, true until the process is
    replaced. `ratio`: its last hit ratio while it was warm. `before`: that of its predecessor. `took`: duration of the
    last warm-up in the pod that is complete, in seconds. None: not known.
    """

    pid: int
    started: int
    cpu: int
    began: int
    warm: bool = False
    ratio: int | None = None
    before: int | None = None
    took: int | None = None


def seen(stats: Stats) -> Seen:
    """The process in the reply to `stats`. A missing value counts as 0."""

    def value(name: str) -> float:
        return number(stats.get(name)) or 0

    pid, time, hits, misses = (int(value(name)) for name in ("pid", "time", "get_hits", "get_misses"))
    cpu = round(1000 * (value("rusage_user") + value("rusage_system")))
    return Seen(pid, max(0, time - int(value("uptime"))), time, cpu, hits, misses)


def is_same(record: Record, process: Seen) -> bool:
    """Whether this is the process of the record. In a container of its own, memcached always has the process ID 1."""
    return process.pid == record.pid and process.cpu >= record.cpu and _continues(record, process)


def follow(record: Record | None, process: Seen) -> Record:
    """The record of the process that is seen now, after the record of the process that was seen before."""
    if record is None:
        return Record(process.pid, process.started, process.cpu, process.started)
    if is_same(record, process):
        return record._replace(cpu=process.cpu)
    began = process.time if _continues(record, process) else process.started
    known = record.warm and record.ratio is not None
    before = record.ratio if known else record.before  # the ratio of a process that never became warm says nothing
    return Record(process.pid, process.started, process.cpu, began, before=before, took=record.took)


def _continues(record: Record, process: Seen) -> bool:
    """Whether the clock of the process has the same start.

    It has also after a warm restart (option -e), which restores memcached's clock: `uptime` then includes that of the
    process before.
    """
    return abs(process.started - record.started) <= START_TOLERANCE


def with_ratio(record: Record, found: Window) -> Record:
    """The record with the hit ratio of a full minute, if the process is warm and the minute is typical."""
    if not record.warm or found.seconds < MINUTE or found.gets < MIN_REQUESTS:
        return record
    return record._replace(ratio=WHOLE * found.hits // found.gets)


def encode(record: Record) -> bytes:
    """The content of the state file."""
    return f"{fields.render({k: int(v) for k, v in record._asdict().items() if v is not None})}\n".encode()


def decode(content: bytes) -> Record | None:
    """The record in the state file; None if its content is not one."""
    try:
        found = fields.parse(content.decode("ascii").removesuffix("\n"))
        warm = bool(found.pop("warm"))
        record = Record(warm=warm, **found)
    except (ValueError, KeyError, TypeError):
        return None
    return record if encode(record) == content and _is_plausible(record) else None


def _is_plausible(record: Record) -> bool:
    return all(ratio is None or ratio <= WHOLE for ratio in (record.ratio, record.before))
