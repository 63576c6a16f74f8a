"""The states of the pod of a slot, as one table. Read it from the top: the first row that applies decides.

docs/decisions/updates-in-place.md describes the states by these names.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

from memcached_api import conditions as c
from memcached_api.annotations import RECORD_ANNOTATION
from memcached_operator.engine.kind import PodStep
from memcached_operator.engine.reporting.conditions import timestamp
from memcached_operator.findings.finding import Problem
from memcached_operator.kube.times import earliest
from memcached_operator.memcached.updates import patches
from memcached_operator.memcached.updates.amounts import is_in_effect
from memcached_operator.memcached.updates.facts import REQUEST_LESS, Facts
from memcached_operator.memcached.updates.target import Target
from memcached_operator.world.pod import Pod

UNKNOWN: Final = 60.0
"""Seconds until a pod is considered again whose next step depends on what the API server serves."""


class SlotState(Enum):
    """What the state of a pod means for the other slots, and for its step."""

    DONE = "done"
    """It is updated and available. A step only removes its record."""
    BUSY = "busy"
    """Something happens that the next step must wait for."""
    OUTDATED = "outdated"
    """It has a step, which must wait until the other pods are available."""
    UNFINISHED = "unfinished"
    """It has a step that completes or restores it, which need not wait."""
    STUCK = "stuck"
    """It has a problem that ends the update. A step tries again what has failed, and touches no container."""


@dataclass(frozen=True)
class State:
    """A row of the table. `after`: seconds until the pod may have another state without an event.

    `doing`: what happens to the pod, for messages. `keeps_memcached`: the step does not touch the first container.
    """

    name: str
    applies: Callable[[Facts], object]
    state: SlotState
    doing: str | Callable[[Facts], str] = "cannot be updated"
    step: Callable[[Facts], PodStep | None] = lambda _: None
    problem: Callable[[Facts], Problem | None] = lambda _: None
    after: Callable[[Facts], float | None] = lambda _: None
    keeps_memcached: bool | Callable[[Facts], bool] = False


DONE, BUSY, OUTDATED, UNFINISHED, STUCK = SlotState
REPLACING, RESIZING, ANNOTATING = "is being replaced", "is being resized", "gets its annotations back"
NOT_SERVED = "waits until the API server reports which APIs it serves"

# fmt: off
UPDATED: Final = (
    State("updated",                          lambda it: (it.available_in == 0 and not it.other_annotations
                                                         and RECORD_ANNOTATION not in it.pod.metadata.annotations),
          DONE, ""),
    # Its record is of an update to another revision (abandoned), or to this one (begun).
    State("abandoned, with added amounts",    lambda it: it.is_abandoned and it.keeps_added(),
          OUTDATED, REPLACING, patches.delete),
    State("without its image",                lambda it: it.begun and it.image_failure,
          UNFINISHED, "is being restored to its previous image", patches.restore),
    State("changed, without its annotations", lambda it: it.begun and it.wait.text and it.other_annotations,
          UNFINISHED, ANNOTATING, patches.annotate),  # without its arguments, memcached cannot start
    State("changed, and late",                lambda it: it.begun and it.wait.text and it.late.text,
          STUCK, problem=lambda it: it.problem(it.late.text, c.PROGRESS_DEADLINE_EXCEEDED),
          after=lambda it: it.wait.seconds),
    State("changed",                          lambda it: it.begun and it.wait.text,
          BUSY, lambda it: it.wait.text, after=lambda it: earliest((it.late.seconds, it.wait.seconds))),
    State("to be lowered, APIs unknown",      lambda it: it.must_lower and it.target.resize is None,
          BUSY, NOT_SERVED, after=lambda _: UNKNOWN),
    State("to be lowered",                    lambda it: it.must_lower and it.final,
          UNFINISHED, RESIZING, lambda it: patches.resize(it, it.final)),
    State("lowered",                          lambda it: it.must_lower,
          UNFINISHED, RESIZING, lambda it: patches.record(it, it.last_record())),
    State("abandoned",                        lambda it: it.is_abandoned,
          UNFINISHED, "is no longer being updated", lambda it: patches.record(it, it.last_record())),
    # Its update is in effect.
    State("without its annotations",          lambda it: it.other_annotations,
          OUTDATED, ANNOTATING, patches.annotate, keeps_memcached=True),
    State("not ready",                        lambda it: it.available_in != 0,
          BUSY, "is not ready yet"),
    State("settling",                         lambda it: it.forgettable_in,
          DONE, "", after=lambda it: it.forgettable_in),
    State("settled",                          lambda _: True,
          DONE, "", lambda it: patches.record(it, None)),
)
"""The states of a pod that has the revision of the target."""

OTHERS: Final = (
    # Its update has failed.
    State("to be restored, APIs unknown",     lambda it: (it.has_failed and it.record.amounts is not None
                                                         and it.target.resize is None),
          BUSY, NOT_SERVED, after=lambda _: UNKNOWN),
    State("to be restored",                   lambda it: it.has_failed and it.final,
          UNFINISHED, "is being restored to its previous resources", lambda it: patches.resize(it, it.final)),
    State("restored to its image",            lambda it: it.has_failed and it.record.reason != c.APPLY_FAILED,
          STUCK, problem=Facts.no_image),
    State("restored, without a next try",     lambda it: it.has_failed and not it.missing(it.target.amounts),
          STUCK, problem=lambda it: it.refused("Request less in the spec")),
    State("restored",                         lambda it: it.has_failed and it.next_try > it.now,
          STUCK, problem=lambda it: it.refused(f"The next try is at {timestamp(it.next_try)}. {REQUEST_LESS}"),
          after=lambda it: (it.next_try - it.now).total_seconds()),
    State("to be tried again",                lambda it: it.has_failed,
          STUCK, step=lambda it: patches.record(it, it.retried_record()), problem=Facts.tried_again),
    # It has another revision.
    State("to be replaced",                   lambda it: it.has_nothing_to_lose or it.needs_new_pod(),
          OUTDATED, REPLACING, patches.delete),
    State("restarting",                       lambda it: it.seen_in or it.restarted_in,
          BUSY, "restarts", after=lambda it: max(it.seen_in, it.restarted_in)),
    State("to be resized, APIs unknown",      lambda it: it.desired and it.target.resize is None,
          BUSY, NOT_SERVED, after=lambda _: UNKNOWN),
    State("to be resized",                    lambda it: it.lacking and it.begun and it.record.amounts is not None,
          OUTDATED, RESIZING, lambda it: patches.resize(it, it.lacking), Facts.tried_again, keeps_memcached=True),
    State("to be resized, not recorded",     lambda it: it.lacking,
          OUTDATED, RESIZING, lambda it: patches.record(it, it.begun_record()), Facts.tried_again,
          keeps_memcached=True),
    State("to be changed",                    lambda it: is_in_effect(it.pod, it.raised),
          OUTDATED, "is being updated", lambda it: it.change.step,
          keeps_memcached=lambda it: it.change.keeps_memcached),
    # Its resize is not in effect.
    State("resized by another client",        lambda it: not it.current.revision,
          OUTDATED, RESIZING, lambda it: patches.record(it, it.foreign_record()), keeps_memcached=True),
    State("being resized",                    lambda it: it.waited < it.obstacle.lasts,
          BUSY, RESIZING, problem=Facts.tried_again, after=lambda it: (it.obstacle.lasts - it.waited).total_seconds()),
    State("cannot be resized",                lambda it: it.refused_in == 0,
          UNFINISHED, RESIZING, lambda it: patches.record(it, it.refused_record()), Facts.tried_again),
    State("being resized, and late",          lambda _: True,
          STUCK, problem=Facts.not_resized, after=lambda it: it.refused_in),
)
"""The states of a pod that has another revision."""
# fmt: on


@dataclass(frozen=True)
class Slot:
    """The pod of a slot.

    `doing`: what happens to it, for messages. `requeue_after`: seconds until it may be available, or until its earlier
    step is not waited for any more. `keeps_memcached`: its step does not touch the first container. `ready`: it is
    available. `failing`: it is updated, and cannot become ready. The rest concerns outdated pods. `begun`: its update
    has begun. `changing`: its update, or an earlier one, has begun and is not completed. `broken`: it cannot become
    ready. `in_flight`: an earlier step may still restart it.
    """

    name: str
    state: SlotState
    doing: str = ""
    step: PodStep | None = None
    problem: Problem | None = None
    requeue_after: float | None = None
    keeps_memcached: bool = False
    ready: bool = False
    failing: bool = False
    begun: bool = False
    changing: bool = False
    broken: bool = False
    in_flight: bool = False

    @property
    def moving(self) -> bool:
        """Whether its pod is being changed."""
        return self.state is SlotState.BUSY or self.in_flight

    @property
    def disturbed(self) -> bool:
        """Whether its pod is being changed, or is not ready: it counts for the limit of slots at once."""
        return self.moving or not self.ready


def assess(pod: Pod, target: Target, now: datetime) -> Slot:
    """The state of a pod that is not being deleted."""
    it = Facts.of(pod, target, now)
    row = next(row for row in (UPDATED if it.is_updated else OTHERS) if row.applies(it))
    outdated = not it.is_updated and not it.has_failed
    waits = (it.broken_in, it.seen_in) if outdated else ()
    return Slot(
        pod.name,
        row.state,
        row.doing if isinstance(row.doing, str) else row.doing(it),
        row.step(it),
        row.problem(it),
        earliest((row.after(it), it.available_in, *waits)),
        row.keeps_memcached if isinstance(row.keeps_memcached, bool) else row.keeps_memcached(it),
        ready=it.available_in == 0,
        failing=it.is_updated and row.state is BUSY and it.is_failing(),
        begun=outdated and it.begun,
        changing=outdated and bool(it.current.revision),
        broken=outdated and it.broken_in == 0,
        in_flight=outdated and it.seen_in > 0,
    )
