"""What a pod needs: a new one, other requests and limits, or another change. Higher amounts are given before the rest,
lower ones afterwards.

A resize restarts no container, so that it can be tried again without the loss of an item.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from msgspec import structs

from memcached_api import conditions as c
from memcached_api.memcached.changes.resizing import Amounts
from memcached_operator.engine.reporting.conditions import timestamp
from memcached_operator.findings.finding import Problem
from memcached_operator.kube import texts
from memcached_operator.memcached.updates import amounts, patches
from memcached_operator.memcached.updates.amounts import lowers_memory_limit, names_of, plain
from memcached_operator.memcached.updates.confirmation import SETTLED, Confirmation
from memcached_operator.memcached.updates.record import UpdateRecord, next_try
from memcached_operator.world.snapshot import Resize

MAX_IMAGE: Final = 255
"""Characters of an image in a message."""
MAX_DIGITS: Final = 10
"""Digits of a number in an annotation."""

NOT_RESIZED: Final = "its node cannot resize it"
REQUEST_LESS: Final = "If its node will not have enough resources, request less in the spec"


class Facts(Confirmation):
    """All facts about a pod."""

    @cached_property
    def has_nothing_to_lose(self) -> bool:
        """Whether memcached has never run in the pod."""
        return not self.pod.container_status(self.target.containers[0]).has_run

    def needs_new_pod(self) -> bool:
        """Whether only a new pod has what the target asks for."""
        target = self.target
        if not target.accepts(self.origin):
            return True
        old, new = target.annotations(self.pod.metadata.annotations), target.desired
        if any(_number(new[name]) < _number(old[name]) for name in target.rules.growing) or self.keeps_added():
            return True
        if target.resize in (None, Resize.ANY) or not self._has_other_amounts(self.record):
            return False
        lacking = self.missing(target.amounts).items()
        return any(target.resize is Resize.NONE or self._limits_memory(name, each) for name, each in lacking)

    def keeps_added(self) -> bool:
        """Whether the pod keeps an amount that an update added, and that the target lacks: none can be removed."""
        spec, desired = self.spec, self.target.amounts
        added = self.record.added.items()
        return any((names_of(spec[name]) - names_of(desired.get(name, {}))) & {*names} for name, names in added)

    @cached_property
    def spec(self) -> dict[str, Amounts]:
        """The amounts that the spec of the pod asks for, by container."""
        return amounts.spec_amounts(self.pod)

    def missing(self, desired: Mapping[str, Amounts]) -> dict[str, Amounts]:
        """The amounts, by container, that the spec of the pod does not have."""
        return {name: each for name, each in desired.items() if not amounts.has_amounts(self.spec.get(name, {}), each)}

    def _possible(self, desired: Mapping[str, Amounts]) -> dict[str, Amounts]:
        """Those of the amounts that the pod does not have, and that the cluster can give it."""
        if self.target.resize is Resize.NONE:
            return {}
        lacking, lowers = self.missing(desired).items(), self.target.resize is Resize.ANY
        return {name: each for name, each in lacking if lowers or not self._limits_memory(name, each)}

    def _limits_memory(self, name: str, new: Amounts) -> bool:
        """Whether a memory limit becomes lower, or is added: an API server that cannot lower one rejects both."""
        before, after = amounts.memory_limit(self.spec.get(name, {})), amounts.memory_limit(new)
        return after is not None and (before is None or after < before)

    def _own(self, found: Mapping[str, Amounts]) -> dict[str, dict[str, dict[str, str]]]:
        """The amounts of the containers that the operator changes, in the form of a record."""
        return {name: plain(each) for name, each in found.items() if name in self.target.containers}

    def _has_other_amounts(self, record: UpdateRecord) -> bool:
        """Whether the pod was created with other amounts, or an update may have changed them."""
        return self.origin.resources != self.target.origin.resources or record.amounts is not None or record.lowers

    @cached_property
    def desired(self) -> Mapping[str, Amounts]:
        """The amounts of the target, by container, if the pod may have others."""
        return self.target.amounts if self._has_other_amounts(self.current) else {}

    @cached_property
    def raised(self) -> dict[str, Amounts]:
        """Those of them that the pod gets before the rest: they lower no memory limit."""
        # Compared with the limits in effect: the spec of the pod can have a limit for which its node lacks memory.
        limits = self.spec | amounts.reported_amounts(self.pod) if self.desired else {}
        # A container that never ran has nothing that a lower limit could end.
        return {
            name: each
            for name, each in self.desired.items()
            if not lowers_memory_limit(each, limits.get(name, {})) or not self.pod.container_status(name).has_run
        }

    @cached_property
    def lacking(self) -> dict[str, Amounts]:
        """Those of them that the spec of the pod does not have."""
        return self.missing(self.raised)

    @cached_property
    def change(self) -> patches.Change:
        """The change of images and annotations."""
        return patches.change(self, lowers=bool(self.missing(self.desired)))

    @cached_property
    def final(self) -> dict[str, Amounts]:
        """The amounts that the pod gets at last, by container, or that it gets back after a failure.

        Nothing depends on when they are in effect: the node lowers a memory limit only when less memory is used. Where
        the cluster cannot lower it, it stays.
        """
        return self._possible(self.target.amounts if self.is_updated else self._own(self.record.amounts or {}))

    @cached_property
    def obstacle(self) -> amounts.Obstacle:
        """The reason why the node does not resize the pod."""
        return amounts.obstacle(self.pod)

    @cached_property
    def refused_in(self) -> float | None:
        """Seconds until it is certain that the node never makes the resize; None if it may.

        Earlier, the condition can be about the previous resize, because the node may not have seen the latest one.
        """
        is_infeasible = amounts.pending(self.pod).reason == "Infeasible"
        return max(0.0, (SETTLED - self.waited).total_seconds()) if is_infeasible else None

    @cached_property
    def next_try(self) -> datetime:
        """The time at which the failed resize is tried again."""
        return next_try(self.record, self.now)

    # Records that steps write.

    def last_record(self) -> UpdateRecord | None:
        """The record when no amounts must be lowered any more."""
        record = self.record
        if self.begun:
            return structs.replace(record, lowers=False)
        return UpdateRecord(self.target.revision, record.since, record.restarts) if record.restarts else None

    def begun_record(self) -> UpdateRecord:
        """The record before a resize. It keeps what must be restored if an image of an earlier update is missing."""
        current, spec, desired = self.current, self.spec, self.target.amounts
        found = ((name, names_of(each) - names_of(spec[name])) for name, each in desired.items() if name in spec)
        added = {name: sorted({*current.added.get(name, ()), *names}) for name, names in found}
        added = {name: names for name, names in added.items() if names}
        before = current.amounts or self._own(spec)
        return self._of_now(current, amounts=before, added=added, failed="", tries=0, again=False)

    def foreign_record(self) -> UpdateRecord:
        """The record of a resize by another client: the origin has the amounts before the present update."""
        created = {name: amounts.amounts_in(each) for name, each in self.origin.resources.items()}
        return self._of_now(UpdateRecord("", ended=self.current.ended), amounts=self._own(created))

    def refused_record(self) -> UpdateRecord:
        """The record of a resize that the node cannot make, with the amounts that the pod gets back."""
        record, reason, failed = self.record, c.APPLY_FAILED, f"{NOT_RESIZED}: {self.obstacle.cause}"
        previous = self._own(record.amounts or {})
        if not self.missing(previous):  # what an earlier update asked for, and the node refused then
            previous |= self._own(amounts.allocated_amounts(self.pod))
        tries = record.tries + 1
        return self._of_now(record, amounts=previous, failed=failed, reason=reason, tries=tries, again=False)

    def retried_record(self) -> UpdateRecord:
        """The record of a failed resize that is tried again."""
        return self._of_now(self.record, again=True)

    def _of_now(self, record: UpdateRecord, **changed: Any) -> UpdateRecord:
        return structs.replace(record, revision=self.target.revision, since=timestamp(self.now), **changed)

    # Problems, each with its remedy.

    def not_resized(self) -> Problem:
        """The problem of a resize that the node has not made in time."""
        remedy = self.obstacle.remedy or (patches.UNDO_ADDED if self.record.added else patches.UNDO)
        kept = f"{NOT_RESIZED}: {self.obstacle.cause}. It keeps its items and its current resources"
        return self.problem(f"{kept}. {remedy}. {self.target.rules.replacing}")

    def refused(self, remedy: str) -> Problem:
        """The problem of a pod that has its previous amounts again, because its node could not resize it."""
        added = ", apart from added amounts," if self.record.added else ","
        kept = f"{self.record.failed}. It uses its previous resources again{added} and its items are kept"
        return self.problem(f"{kept}. {remedy}. {self.target.rules.replacing}")

    def tried_again(self) -> Problem | None:
        """The problem of a pod whose resize is tried again, until that is in effect, so that no other pod follows."""
        if not self.begun or not (self.record.failed or self.record.again):
            return None
        kept = f"{self.record.failed}. Its items are kept. It is being tried again"
        return self.problem(f"{kept}. {REQUEST_LESS}. {self.target.rules.replacing}")

    def no_image(self) -> Problem:
        """The problem of a pod whose new image is missing. Admission may change only the images of new pods."""
        kept = f"{self.record.failed}. It uses its previous image again, and its items are kept"
        remedy = "Correct the image. To try the same image again, set the previous one first"
        written = self.origin.images
        for each in self.pod.spec.containers:
            if written.get(each.name, each.image) != each.image:
                old, new = (texts.name(text, MAX_IMAGE) for text in (written[each.name], each.image))
                changed = f"When this pod was created, the cluster's admission replaced the image {old} with {new}"
                kept_images = "but it does not replace images of existing pods"
                remedy = f"{changed}, {kept_images}. Correct the image if it does not exist"
                break
        return self.problem(f"{kept}. {remedy}. {self.target.rules.replacing}", self.record.reason)


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) <= MAX_DIGITS else 0
