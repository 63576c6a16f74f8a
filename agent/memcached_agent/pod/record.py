"""The record of a memcached process, and of its predecessor in the pod. It survives restarts of the agent."""

from typing import Final, Literal, NamedTuple

from memcached_agent.memcached.stats import Gets, Stats, gets, number
from memcached_agent.pod import fields

WHOLE: Final = 10_000
"""A hit ratio of 1: records have ratios in basis points, as all their values are integers."""
START_TOLERANCE: Final = 2
"""Seconds by which `time` minus `uptime` of one process may vary."""
COUNTS: Final = ("kept", "lost")
"""Fields that are left out of the state file while they are 0: those of earlier versions do not have them."""

EARLIER: Final = "memory"
"""A field of the state file that earlier versions wrote."""

Items = Literal["kept", "lost"]
"""What a restart of memcached did to its items."""


class Seen(NamedTuple):
    """A memcached process as `stats` shows it.

    `started` and `time`: seconds of memcached's clock. `cpu`: CPU time of the process in milliseconds. A restart sets
    it back, and `stats reset`, unlike the counters, does not.
    """

    pid: int
    started: int
    time: int
    cpu: int
    gets: Gets


class ProcessRecord(NamedTuple):
    """A memcached process, and what is counted over all processes of the pod.

    `began`: when it began to warm up, in seconds of memcached's clock. `warm`: once true, true until the process is
    replaced. `ratio`: its last hit ratio while it was warm. `before`: that of its predecessor. `took`: duration of the
    last warm-up in the pod that is complete, in seconds. None: not known. `kept` and `lost`: restarts of memcached that
    kept its items, or lost them.
    """

    pid: int
    started: int
    cpu: int
    began: int
    warm: bool = False
    ratio: int | None = None
    before: int | None = None
    took: int | None = None
    kept: int = 0
    lost: int = 0


def seen(stats: Stats) -> Seen:
    """The process in the reply to `stats`. A missing value counts as 0."""

    def value(name: str) -> float:
        return number(stats.get(name)) or 0

    pid, time = int(value("pid")), int(value("time"))
    cpu = round(1000 * (value("rusage_user") + value("rusage_system")))
    return Seen(pid, max(0, time - int(value("uptime"))), time, cpu, gets(stats))


def is_same(record: ProcessRecord, process: Seen) -> bool:
    """Whether this is the process of the record. In a process namespace of its own, memcached always has the ID 1."""
    return process.pid == record.pid and process.cpu >= record.cpu and _continues(record, process)


def restart(record: ProcessRecord | None, process: Seen) -> Items | None:
    """The fate of the items between the process of the record and this one; None if it is the same process."""
    if record is None or is_same(record, process):
        return None
    return "kept" if _continues(record, process) else "lost"


def follow(record: ProcessRecord | None, process: Seen) -> ProcessRecord:
    """The record of the process that is seen now, after the record of the process that was seen before."""
    if record is None:
        return ProcessRecord(process.pid, process.started, process.cpu, process.started)
    items = restart(record, process)
    if items is None:
        return record._replace(cpu=process.cpu)
    return _next(record, process)._replace(**{items: getattr(record, items) + 1})


def _next(record: ProcessRecord, process: Seen) -> ProcessRecord:
    """The record of a new process, without its restart. What belongs to the pod stays."""
    known = record.warm and record.ratio is not None
    return record._replace(
        pid=process.pid,
        started=process.started,
        cpu=process.cpu,
        began=process.time if _continues(record, process) else process.started,
        warm=False,
        ratio=None,
        before=record.ratio if known else record.before,  # that of a process that never became warm says nothing
    )


def _continues(record: ProcessRecord, process: Seen) -> bool:
    """Whether the clock of the process has the same start.

    It has also after a warm restart (option -e), which restores memcached's clock: `uptime` then includes that of the
    process before.
    """
    return abs(process.started - record.started) <= START_TOLERANCE


def encode(record: ProcessRecord) -> bytes:
    """The content of the state file."""
    values = {k: v for k, v in record._asdict().items() if v is not None and (v or k not in COUNTS)}
    return f"{fields.render({k: int(v) for k, v in values.items()})}\n".encode()


def decode(content: bytes) -> ProcessRecord | None:
    """The record in the state file; None if its content is not one."""
    try:
        values = fields.parse_fields(content.decode("ascii").removesuffix("\n"))
        values.pop(EARLIER, None)
        rest = {name: value for name, value in values.items() if name != "warm"}
        record = ProcessRecord(warm=bool(values["warm"]), **rest)
    except (ValueError, KeyError, TypeError):
        return None
    is_whole = content.endswith(b"\n") and encode(record) == f"{fields.render(values)}\n".encode()
    return record if is_whole and _is_plausible(record) else None


def _is_plausible(record: ProcessRecord) -> bool:
    return all(ratio is None or ratio <= WHOLE for ratio in (record.ratio, record.before))
