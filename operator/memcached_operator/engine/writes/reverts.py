"""Remembers which children other clients keep changing: names the client, and limits how often a change is reverted.

In memory only, and bounded: after a restart of the controller, changes are counted again from the first.
"""

import logging
import time
from array import array
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Final

from memcached_api import conditions as c
from memcached_api.annotations import INTENT_ANNOTATION
from memcached_operator.engine.writes.intent import identity, with_recorded_intent
from memcached_operator.findings.finding import Intervention, Problem
from memcached_operator.findings.interventions import RESTART, Change, reverted
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.field_managers import Path, differences, manager_of
from memcached_operator.kube.resource import Key, Object, nested_map

log = logging.getLogger(__name__)

WINDOW: Final = 3600.0
"""Seconds within which a second change of a child is reported, and for which the report stays after the last change. A
downscaler changes a child every minute."""

REPORTED: Final = 2
"""The change of a child from which on they are reported. A single one may be a mistake, and is reverted silently."""

LIMIT, PERIOD = 10, 60.0
"""Maximum times that a child is written again within a number of seconds."""

CALM: Final = 2 * PERIOD
"""Seconds without a change after which a child that reached the limit is not reported as Degraded any more."""

AGAIN: Final = 330.0
"""Least seconds after its last change for which an autoscaler is reported. It tries again after 15 s, and lowers the
size only to the largest of the last 5 minutes (kubernetes pkg/controller/podautoscaler, its defaults)."""

READ_PERIOD: Final = 60.0
"""Minimum seconds between two reads of the field managers of a child."""

MAX_CAUSES: Final = 3
"""Maximum reports about a child that are remembered."""

MAX_BYTES: Final = 8 * 2**20
"""Bytes of the children that are remembered, with their reports: 8,000 without a report, or 2,000 with three of 1,000
characters. The oldest ones are forgotten. A Memcached can have 110 children."""

RECORD_BYTES, CAUSE_BYTES = 1000, 130
"""Bytes of a child, the only one of its owner, without reports; and of a report besides its message (measured)."""

MAX_WRITTEN: Final = 10_000
"""Maximum existing children that are remembered, of the last custom resources. Each takes 250 bytes."""

LIMITED: Final = (
    f"More than {LIMIT} changes a minute: until they end, the controller reverts at most {LIMIT} of them a minute"
)
Restart = Callable[[Object], str] | None
Read = Callable[[Key], Awaitable[Object | None]]
"""Reads an object with all of its managedFields, or None if it does not exist. Raises ApiError."""


@dataclass(slots=True)
class _Record:
    """The writes of one child for the same intent. Times are in seconds of the same clock."""

    intent: str
    count: int = 0
    """The number of reverts."""
    times: "array[float]" = field(default_factory=lambda: array("d"))
    """The times of the last writes, at most LIMIT."""
    causes: tuple[Intervention, ...] = ()
    """What was reverted, the first one that was seen at the start."""
    conflicts: tuple[float, float] = (float("-inf"), float("-inf"))
    """The times at which a conflict was seen last, and the time before."""
    read_at: float = float("-inf")
    """The time of the last read of the field managers."""
    reached_limit: bool = False
    """The child was changed too often, until there is no change for CALM seconds."""
    weight: int = 0
    """The bytes with which it counts; 0 until it is remembered."""

    def add(self, now: float) -> None:
        self.reached_limit = self.reached_limit and now - self.times[-1] < CALM
        self.times.append(now)
        del self.times[:-LIMIT]
        self.reached_limit |= len(self.times) == LIMIT and now - self.times[0] < PERIOD

    def add_cause(self, cause: Intervention) -> None:
        if cause not in self.causes:
            self.causes = (*self.causes, cause)[-MAX_CAUSES:]
        if cause.is_conflict:
            self.conflicts = (self.times[-1], self.conflicts[0])

    def conflict_ends(self) -> float:
        """The time until which a conflict is reported: longer for a client that is slower, which would else flap."""
        last, before = self.conflicts
        return last + min(max(AGAIN, 1.5 * (last - before) if before > float("-inf") else 0.0), WINDOW)

    def weigh(self) -> int:
        """Compute its weight."""
        self.weight = RECORD_BYTES + sum(CAUSE_BYTES + getsizeof(cause.message) for cause in self.causes)
        return self.weight


@dataclass(frozen=True)
class Revert:
    """A write that reverts a change of another client, or may do so."""

    owner: str
    """The uid of the owner."""
    key: Key
    """The key of the child."""
    record: _Record
    counts: bool
    """The write counts as a revert."""
    cause: Intervention | None
    """The change; None if it is not to be reported."""


@dataclass(frozen=True)
class Report:
    """What the status says about the children of an object."""

    interventions: tuple[Intervention, ...] = ()
    problems: tuple[Problem, ...] = ()
    requeue_after: float | None = None
    """Seconds until the report changes without another revert; None if it cannot."""


class Reverts:
    """The children that were written again although their intent had not changed, by the uid of their owner."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._written: OrderedDict[str, frozenset[Key]] = OrderedDict()
        """The children that exist after the last plan, by the uid of their owner."""
        self._written_keys = 0
        self._records: OrderedDict[str, dict[Key, _Record]] = OrderedDict()
        """The children that were written again, by the uid of their owner. The last ones are at the end."""
        self._bytes = 0
        """The sum of the weights of the records."""
        self.clock: Callable[[], float] = time.monotonic

    def delay(self, cr: Object, key: Key, child: Object) -> float:
        """Seconds until this child may be written again with the same intent; 0 if it may now."""
        record = self._of(cr).get(key)
        if record is None or len(record.times) < LIMIT or record.intent != identity(child):
            return 0.0
        return max(0.0, record.times[0] + PERIOD - self.clock())

    async def identify(
        self, cr: Object, key: Key, child: Object, live: Object | None, restart: Restart = None
    ) -> Revert | None:
        """The revert that the next write of a child is, with its cause if it is to be reported.

        None if the spec has changed since the last status, and for a child that is new in the plan, or that could not
        be created. `live`: the child in the store, None if it does not exist. `restart`: see ReconciledKind. Raises
        ApiError.
        """
        is_new = live is None and key not in self._written.get(cr["metadata"]["uid"], (key,))
        if is_new or nested_map(cr, "status").get("observedGeneration") != cr["metadata"].get("generation"):
            self.forget(cr, key)
            return None
        record = self._of(cr).get(key)
        if record is None or record.intent != identity(child) or self.clock() - record.times[-1] >= WINDOW:
            record = _Record(identity(child))
        # The first write may be for another intent: another operator wrote that, or the plan has changed.
        counts = bool(record.times) or live is None or with_recorded_intent(child, live) is not None
        cause = await self._cause(cr, key, child, live, record, restart) if counts else None
        return Revert(cr["metadata"]["uid"], key, record, counts, cause)

    def add(self, revert: Revert | None) -> None:
        """Remember that a revert was written."""
        if revert is None:
            return
        record = revert.record
        record.add(self.clock())
        record.count += revert.counts
        if revert.cause is not None:
            record.add_cause(revert.cause)
        self._remove(revert.owner, revert.key)
        self._records.setdefault(revert.owner, {})[revert.key] = record
        self._records.move_to_end(revert.owner)
        self._bytes += record.weigh()
        while self._bytes > MAX_BYTES:
            self._forget_oldest()

    def remember(self, cr: Object, written: frozenset[Key]) -> None:
        """Remember which children exist after a plan."""
        uid = cr["metadata"]["uid"]
        self._written_keys += len(written) - len(self._written.get(uid, ()))
        self._written[uid] = written
        self._written.move_to_end(uid)
        while self._written_keys > MAX_WRITTEN:
            self._written_keys -= len(self._written.popitem(last=False)[1])

    def report(self, cr: Object) -> Report:
        """What the status of an object says now."""
        now, interventions, problems = self.clock(), list[Intervention](), list[Problem]()
        delays = list[float]()
        for record in self._of(cr).values():
            since = now - record.times[-1]
            if since >= WINDOW:
                continue
            is_limited, left = record.reached_limit and since < CALM, record.conflict_ends() - now
            for cause in record.causes:
                if cause.is_conflict and left <= 0:
                    continue
                if is_limited or cause.is_conflict:
                    text = f"{cause.message}. {LIMITED}" if is_limited else cause.message
                    problems.append(Problem(c.CONFLICT, text, blocks=False))
                    delays.append(CALM - since if is_limited else left)
                else:
                    interventions.append(cause)
                    delays.append(WINDOW - since)
        return Report(tuple(interventions), tuple(problems), min(delays, default=None))

    def forget(self, cr: Object, key: Key) -> None:
        """Forget a child that has a new intent, or that the controller has deleted."""
        self._remove(cr["metadata"]["uid"], key)

    def _of(self, cr: Object) -> dict[Key, _Record]:
        return self._records.get(cr["metadata"]["uid"], {})

    def _forget_oldest(self) -> None:
        """Forget the oldest record of the owner whose children were not written for the longest time."""
        uid, children = next(iter(self._records.items()))
        self._remove(uid, next(iter(children)))

    def _remove(self, uid: str, key: Key) -> None:
        children = self._records.get(uid, {})
        record = children.pop(key, None)
        if record is None:
            return
        self._bytes -= record.weight
        if not children:
            del self._records[uid]

    async def _cause(
        self, cr: Object, key: Key, child: Object, live: Object | None, record: _Record, restart: Restart
    ) -> Intervention | None:
        """The report of a change; None if there is none yet, or if the field managers were read a short time ago."""
        is_first = record.count + 1 < REPORTED
        if live is None:
            return None if is_first else reverted(cr, key, Change(None, deleted=True))
        if is_first and RESTART not in differences(live, child):
            return None
        if self.clock() - record.read_at < READ_PERIOD:
            return None
        record.read_at = self.clock()
        # The store does not keep the fields of a field manager.
        try:
            found = await self._read(key)
        except ApiError as error:  # the report can wait, the write cannot
            log.warning("%s: cannot read who has changed it: %s", key, error)
            return None
        fields = () if found is None else tuple(differences(found, child))
        if found is None or not fields:
            return None
        has_intent = with_recorded_intent(child, found) is not None
        change = Change(manager_of(found, fields), _shown(fields), live=found, replaced_intent=not has_intent)
        return reverted(cr, key, change, restart)


def _shown(fields: tuple[Path, ...]) -> list[Path]:
    """The fields for messages: without the annotation of the operator, unless it is the only one."""
    others = [path for path in fields if path[-1] != INTENT_ANNOTATION]
    return others or list(fields)
