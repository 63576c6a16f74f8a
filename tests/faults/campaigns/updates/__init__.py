"""The operator updates the pods of a StatefulSet in place, or replaces them, one at a time."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from faults.campaigns.updates import disturbances as d
from faults.campaigns.updates import two
from faults.campaigns.updates.changes import CHANGES, DELETE, MISSING_IMAGES, PATCH, RESIZE
from faults.campaigns.updates.ledger import ORIGIN, REVISION
from faults.campaigns.updates.run import Disturbance, at_write, run
from faults.case import Case, in_gate
from faults.faulty import Fault, Kill, LoseReply, Reject, Reset
from faults.rules import Rule
from faults.sandbox import LONG_SYNC_PERIOD

REJECTIONS: Mapping[str, tuple[Fault, int]] = {
    "409": (Reject(409, "Conflict"), 1),
    "429": (Reject(429, "TooManyRequests", retry_after=2), 1),
    "500": (Reject(500, "InternalError"), 3),
    "reset": (Reset(), 1),
}
"""Faults of writes that are retried, and how often each occurs."""
REJECTED: Mapping[str, str] = {"image": PATCH, "memory": RESIZE, "cold": DELETE}
"""The write of each kind that is rejected, by the name of a change."""
KILLED_AFTER = ("image", "memory", "cold")
REFUSALS: Mapping[int, str] = {403: "Forbidden", 422: "Invalid"}
"""Responses to a write that stay the same until something else changes."""

DISTURBANCES: Mapping[str, tuple[Disturbance, tuple[str, ...]]] = {
    "killed-twice": (d.killed_twice, ("image", "cold")),
    "late-events": (d.late_events, ("memory", "arguments-raised")),
    "others-unready": (d.others_unready, ("image", "arguments", "memory-down")),
    "others-overloaded": (d.others_overloaded, ("cold",)),
    "updated-unready": (d.updated_unready, ("memory", "arguments")),
    "own-unready": (d.own_unready, ("agent-image", "memory", "arguments")),
    "warming": (d.warming, ("image", "memory-down")),
    "other-deleted": (d.other_deleted, ("image", "memory", "cold")),
    "own-deleted": (d.own_deleted, ("image", "arguments-raised")),
    "deleted-while-unready": (d.deleted_while_unready, ("image", "arguments")),
    "stuck": (d.stuck, ("cold",)),
    "node-gone": (d.node_gone, ("image", "cold")),
    "changed-again": (d.changed_again, ("image", "arguments", "cold")),
    "changed-back": (d.changed_back, ("image", "arguments", "agent-image", "arguments-raised", "warm-up")),
    "changed-back-unseen": (d.changed_back_unseen, ("image", "arguments")),
    "paused": (d.paused, ("image", "memory", "cold")),
    "scaled-up": (partial(d.scaled, size=4), ("image", "cold")),
    "scaled-down": (partial(d.scaled, size=2), ("image", "cold")),
    "revision-removed": (partial(d.metadata_removed, names=(REVISION,)), ("image", "memory")),
    "origin-removed": (partial(d.metadata_removed, names=(ORIGIN,)), ("image",)),
    "memory-removed": (partial(d.metadata_removed, names=("memory",)), ("memory",)),
    "arguments-removed": (partial(d.metadata_removed, names=("args",)), ("arguments",)),
    "record-removed": (d.record_removed, ("image", "memory")),
    "crashed": (d.crashed, ("image", "resources")),
    "deferred": (d.deferred, ("memory", "arguments-raised")),
    "infeasible": (d.infeasible, ("memory", "resources")),
    "kubelet-restarted": (d.kubelet_restarted, ("image", "memory")),
    "infeasible-and-back": (d.infeasible_and_back, ("resources", "arguments-raised")),
    "infeasible-and-replaced": (d.infeasible_and_replaced, ("memory",)),
}
"""What happens during updates, and during which."""
ARRANGED: Mapping[str, tuple[Disturbance, Disturbance | None, tuple[str, ...]]] = {
    "counts-reset": (d.counts_reset, None, ("image", "arguments")),
    "ends-forgotten": (d.ends_forgotten, None, ("arguments",)),
    "race": (d.racing, d.race, ("image", "arguments")),
    "killed-by-resize": (d.killing, d.killed_by_resize, ("memory", "arguments-raised")),
}
"""What is different from the beginning, what follows from it, and during which changes."""
TAKEOVERS: Mapping[str, two.Takeover] = {"leader-paused": two.paused, "leader-killed": two.killed}
CORRECTIONS = ("corrected", "back", "killed")
"""What follows after an image was missing: another image, the previous spec, or a restart of the operator."""


def cases() -> list[Case]:
    """All cases."""
    found = [Case(f"updates/{name}/alone", partial(run, change=change), limit=360) for name, change in CHANGES.items()]
    found += [_at(name, how, what, rule) for name, how, what, rule in _faults()]
    for how, (disturb, names) in DISTURBANCES.items():
        found += [_case(f"{name}/{how}", partial(run, change=CHANGES[name], disturb=disturb)) for name in names]
    for how, (arrange, disturb, names) in ARRANGED.items():
        found += [
            _case(f"{name}/{how}", partial(run, change=CHANGES[name], arrange=arrange, disturb=disturb))
            for name in names
        ]
    run_stale = partial(run, change=CHANGES["image"], arrange=d.crash_unseen, disturb=d.stale)
    found.append(_case("image/stale", run_stale))
    for how, takeover in TAKEOVERS.items():
        for name in REJECTED:
            run_two = partial(two.run, change=CHANGES[name], takeover=takeover)
            found.append(Case(f"updates/{name}/{how}", run_two, limit=360))
    for code, reason in REFUSALS.items():
        rule = at_write(RESIZE, Reject(code, reason), times=None)
        found.append(
            _case(f"memory/refused-{code}", partial(run, change=CHANGES["memory"], rule=rule, disturb=d.refused))
        )
    for name, change in MISSING_IMAGES.items():
        for then in CORRECTIONS:
            if (name, then) != ("cold", "back"):
                found.append(
                    _case(f"{name}/missing-{then}", partial(run, change=change, disturb=partial(d.missing, then=then)))
                )
    return in_gate(found, "updates/memory/lost/3-patch-pods")


def _case(name: str, function: partial[Any]) -> Case:
    """A case in which nothing happens by a sync."""
    return Case(f"updates/{name}", function, sync_period=LONG_SYNC_PERIOD, limit=360)


def _at(name: str, how: str, what: str, rule: Rule) -> Case:
    """A case with a fault at a write. If its reply is lost, no sync may cause the retry."""
    period = LONG_SYNC_PERIOD if how == "lost" else None
    return Case(f"updates/{name}/{how}/{what}", partial(run, change=CHANGES[name], rule=rule), sync_period=period)


def _faults() -> Iterator[tuple[str, str, str, Rule]]:
    """The faults at writes: the name of a change, that of the fault, the write and the rule."""
    for name, change in CHANGES.items():
        for number, what in enumerate(change.writes):
            skip, title = change.writes[:number].count(what), f"{number + 1}-{what.replace(' ', '-').replace('/', '-')}"
            yield name, "killed-during", title, at_write(what, Kill("during"), skip=skip)
            if name in KILLED_AFTER:
                yield name, "killed-after", title, at_write(what, Kill("after"), skip=skip)
                yield name, "lost", title, at_write(what, LoseReply(), skip=skip)
    for name, what in REJECTED.items():
        for how, (fault, times) in REJECTIONS.items():
            yield name, how, what.replace(" ", "-").replace("/", "-"), at_write(what, fault, times=times)
