"""Writes a child that another client keeps changing less and less often, as the queue retries, and names the client.

In memory only: after a restart of the controller, changes are counted again from the first.
"""

import logging
import random
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from memcached_api import conditions as c
from memcached_api.annotations import INTENT_ANNOTATION
from memcached_operator.engine.runtime.queue import backoff
from memcached_operator.engine.writes.intent import identity, with_recorded_intent
from memcached_operator.findings.finding import Intervention, Problem
from memcached_operator.findings.interventions import RESTART, Change, reverted
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.field_managers import Path, differences, manager_of
from memcached_operator.kube.resource import Key, Object, nested_map

log = logging.getLogger(__name__)

PERIOD: Final = 60.0
"""Maximum seconds until a child is written again, and seconds after which a change is reverted at once again: a client
causes at most 8 writes of a child in a minute, and one that acts once a minute does not wait. Minimum seconds between
two reads of the field managers of a child."""

LIMIT: Final = 7
"""Writes in a row, each soon after the one before, from which on Degraded is True: the backoff is about 30 s then."""

WINDOW: Final = 3600.0
"""Seconds within which a second change of a child is reported, and for which the report stays after the last change. A
downscaler changes a child every minute."""

AGAIN: Final = 330.0
"""Least seconds after the last change for which Degraded stays True. An autoscaler tries again after 15 s, and lowers
the size only to the largest of the last 5 minutes (kubernetes pkg/controller/podautoscaler, its defaults)."""

MAX_RECORDS: Final = 4000
"""Maximum children that are remembered, the last ones that were written again: 8 MiB, if each has a report of 1,000
characters, or 18 MiB with three. A Memcached can have 110 children."""

MAX_CAUSES: Final = 3
"""Maximum reports about a child, those of the last clients that changed it."""

LIMITED: Final = f"This happens so often that the controller waits up to {PERIOD:.0f} s before it reverts a change"
Restart = Callable[[Object], str] | None
Read = Callable[[Key], Awaitable[Object | None]]
"""Reads an object with all of its managedFields, or None if it does not exist. Raises ApiError."""


class _Seen(NamedTuple):
    """The last write that reverted a change."""

    at: float
    """The time of the write."""
    interval: float
    """Seconds between that and the write before that reverted the same change."""

    def conflict_end(self) -> float:
        """The time until which a conflict is reported: longer for a slower client, whose report would else flap."""
        return self.at + min(max(AGAIN, 1.5 * self.interval), WINDOW)


@dataclass(slots=True)
class _Record:
    """The writes of one child for the same intent. Times are in seconds of the same clock."""

    owner: str
    """The uid of the owner."""
    intent: str
    reverts: int = 0
    """The number of writes that reverted a change."""
    at: float = float("-inf")
    """The time of the last write."""
    quick: int = 0
    """The last writes in a row of which each came soon after the one before."""
    delay: float = 0.0
    """Minimum seconds until the next write."""
    limited_until: float = float("-inf")
    """The time until which the child counts as one that is changed too often."""
    causes: dict[Intervention, _Seen] = field(default_factory=dict[Intervention, _Seen])
    """The changes that are to be reported, in the order in which they were seen first."""
    edit: Intervention | None = None
    """The change that was found by the last read of the field managers that found one."""
    read_at: float = float("-inf")
    """The time of the last read of the field managers."""

    def add(self, now: float, cause: Intervention | None) -> None:
        """Record a write."""
        self.quick = self.quick + 1 if now - self.at < max(PERIOD, 2 * self.delay) else 1
        self.delay = backoff(self.quick, random.random(), PERIOD)  # noqa: S311 - jitter, not a secret
        if self.quick >= LIMIT or now < self.limited_until:
            self.limited_until = now + AGAIN
        if cause is not None:
            before = self.causes.get(cause)
            self.causes[cause] = _Seen(now, now - (self.at if before is None else before.at))
            if len(self.causes) > MAX_CAUSES:
                del self.causes[min(self.causes, key=lambda each: self.causes[each].at)]
        self.at = now

    def report(self, now: float) -> Iterator[tuple[Intervention | Problem, float]]:
        """What the status says about the child, and the time until which it does."""
        is_limited = now < self.limited_until
        for cause, seen in self.causes.items():
            end = seen.conflict_end() if cause.is_conflict else seen.at + WINDOW
            if end <= now:
                continue
            if is_limited:
                text = f"{cause.message}. {LIMITED}"
                yield Problem(c.CONFLICT, text, blocks=False), min(end, self.limited_until)
            elif cause.is_conflict:
                yield Problem(c.CONFLICT, cause.message, blocks=False), end
            else:
                yield cause, end


@dataclass(frozen=True)
class Revert:
    """A write that reverts a change of another client, or may do so."""

    key: Key
    """The key of the child."""
    record: _Record
    counts: bool
    """The write counts as a revert."""
    cause: Intervention | None
    """The change; None if it is not to be reported, or not known."""


@dataclass(frozen=True)
class Report:
    """What the status says about the children of an object."""

    interventions: tuple[Intervention, ...] = ()
    problems: tuple[Problem, ...] = ()
    requeue_after: float | None = None
    """Seconds until the report changes without another revert; None if it cannot."""


class Reverts:
    """The children that were written again although their intent had not changed."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._records: OrderedDict[Key, _Record] = OrderedDict()
        """By the child. The last ones that were written are at the end."""
        self.clock: Callable[[], float] = time.monotonic

    def delay(self, cr: Object, key: Key, child: Object) -> float:
        """Seconds until this child may be written again with the same intent; 0 if it may now."""
        record = self._of(cr, key)
        if record is None or record.intent != identity(child):
            return 0.0
        return max(0.0, record.at + record.delay - self.clock())

    async def identify(
        self, cr: Object, key: Key, child: Object, live: Object | None, restart: Restart = None
    ) -> Revert | None:
        """The revert that the next write of a child is, with its cause if it is to be reported.

        None if the spec has changed since the last status. `live`: the child in the store, None if it does not exist.
        `restart`: see ReconciledKind. Raises ApiError.
        """
        if nested_map(cr, "status").get("observedGeneration") != cr["metadata"].get("generation"):
            self.forget(key)
            return None
        record = self._of(cr, key)
        if record is None or record.intent != identity(child) or self.clock() - record.at >= WINDOW:
            record = _Record(cr["metadata"]["uid"], identity(child))
        # The first write may be for another intent: another operator wrote that, or the plan has changed, or the child
        # is new in it.
        counts = record.quick > 0 or (live is not None and with_recorded_intent(child, live) is not None)
        cause = await self._cause(cr, key, child, live, record, restart) if counts else None
        return Revert(key, record, counts, cause)

    def add(self, revert: Revert | None) -> None:
        """Remember that a revert was written."""
        if revert is None:
            return
        record = revert.record
        record.add(self.clock(), revert.cause)
        record.reverts += revert.counts
        self._records[revert.key] = record
        self._records.move_to_end(revert.key)
        if len(self._records) > MAX_RECORDS:
            self._records.popitem(last=False)

    def report(self, cr: Object, keys: Iterable[Key]) -> Report:
        """What the status of an object says now. `keys`: its children."""
        now = self.clock()
        records = (record for key in keys if (record := self._of(cr, key)) is not None)
        found = [(each, end - now) for record in records for each, end in record.report(now)]
        return Report(
            tuple(each for each, _ in found if isinstance(each, Intervention)),
            tuple(each for each, _ in found if isinstance(each, Problem)),
            min((seconds for _, seconds in found), default=None),
        )

    def forget(self, key: Key) -> None:
        """Forget a child that has a new intent, or that the controller has deleted."""
        self._records.pop(key, None)

    def _of(self, cr: Object, key: Key) -> _Record | None:
        record = self._records.get(key)
        return record if record is not None and record.owner == cr["metadata"]["uid"] else None

    async def _cause(
        self, cr: Object, key: Key, child: Object, live: Object | None, record: _Record, restart: Restart
    ) -> Intervention | None:
        """The report of a change, as of the last read if that was a short time ago; None if there is none.

        A single change may be a mistake, and is reverted silently.
        """
        if live is None:
            return reverted(cr, key, Change(None, deleted=True)) if record.reverts else None
        if not record.reverts and RESTART not in differences(live, child):
            return None
        if self.clock() - record.read_at < PERIOD:
            return record.edit
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
        record.edit = reverted(cr, key, change, restart)
        return record.edit


def _shown(fields: tuple[Path, ...]) -> list[Path]:
    """The fields for messages: without the annotation of the operator, unless it is the only one."""
    others = [path for path in fields if path[-1] != INTENT_ANNOTATION]
    return others or list(fields)
