"""Whether an update in place is in effect in a pod, and what it still waits for.

Only identities and times count. A restart count can fall; the image that a status names can be another name of the same
image; a status can be of a container that started before the kubelet saw the change.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final, NamedTuple, Self

from memcached_api import conditions as c
from memcached_operator.findings import failures
from memcached_operator.findings.finding import Problem
from memcached_operator.findings.rollout import PROGRESS_DEADLINE
from memcached_operator.findings.rules import PodRules
from memcached_operator.kube import texts
from memcached_operator.kube.times import past_time
from memcached_operator.memcached.updates.amounts import MAX_CAUSE
from memcached_operator.memcached.updates.origin import NO_ORIGIN, Origin, origin_of
from memcached_operator.memcached.updates.record import NO_RECORD, UpdateRecord, age, ends, is_planned_end, record_of
from memcached_operator.memcached.updates.target import REVISION_LABEL, Target
from memcached_operator.world.pod import Explained, Pod

RESTARTING: Final = timedelta(seconds=60)
"""The time for which an ended container delays a change. A kubelet restarts it, or waits with it, within seconds."""

SETTLED: Final = timedelta(seconds=10)
"""The time that a container must run to be one of the changed pod: a kubelet that was just starting it ran the previous
image for up to 3 s. In this time the agent signals a memcached that started with the previous arguments."""

PROVEN: Final = timedelta(seconds=20)
"""The time for which a pod must be ready to prove that memcached has the new arguments: in that time, two probes of the
agent, every 5 s with a timeout of 5 s, would have failed."""

UNSEEN: Final = timedelta(seconds=120)
"""After this time, a restart that has not begun does not delay the next change any more, and an agent that must signal
memcached and does not run is a problem."""

REPLACE_IT: Final = "To replace the pod and lose its items, delete it"
"""The remedy if nothing else is known."""

_FAILED: Final = failures.IMAGE_REASONS | failures.START_REASONS
_RULES: Final = PodRules("", is_planned=is_planned_end)


class Wait(NamedTuple):
    """What a pod waits for, for messages; empty if nothing. `seconds`: until that can change without an event."""

    text: str
    seconds: float | None = None


@dataclass(frozen=True, eq=False)
class Confirmation:
    """The facts about a pod, its target and the restarts of its update, at a time. Costly ones are computed only once.

    `record`, `origin`: NO_RECORD and NO_ORIGIN without a valid one. `other_annotations`: those of the template that the
    pod does not have. `is_updated`: it has the revision of the target. `begun`: its record is of the update to the
    target. `has_failed`: that has failed, and is not tried again. `is_abandoned`: its record is of an update to another
    revision, which was not completed, or failed. `must_lower`: amounts become lower before its update is completed, or
    abandoned. `ready_since`, `available_in` (in seconds): None if it is not ready.
    """

    pod: Pod
    target: Target
    now: datetime
    record: UpdateRecord
    origin: Origin
    other_annotations: dict[str, str | None]
    is_updated: bool
    begun: bool
    has_failed: bool
    is_abandoned: bool
    must_lower: bool
    ready_since: datetime | None
    available_in: float | None

    @classmethod
    def of(cls, pod: Pod, target: Target, now: datetime) -> Self:
        """The facts about a pod."""
        record, origin, since, old = record_of(pod), origin_of(pod), ready_since(pod, now), pod.metadata.annotations
        others = {name: value for name, value in target.desired.items() if old.get(name) != value}
        # A label and an origin are always written together. With another origin, another client has set the label.
        is_own = origin is NO_ORIGIN or origin == target.origin
        updated, begun = is_own and revision_of(pod) == target.revision, record.revision == target.revision
        abandoned = record is not NO_RECORD and not begun
        lowers = record.lowers or (abandoned and record.amounts is not None)
        failed = begun and bool(record.failed) and not record.again
        available = None if since is None else max(0.0, target.min_ready - (now - since).total_seconds())
        return cls(
            pod,
            target,
            now,
            record,
            origin,
            others,
            is_updated=updated,
            begun=begun,
            has_failed=failed,
            is_abandoned=abandoned,
            must_lower=lowers,
            ready_since=since,
            available_in=available,
        )

    @cached_property
    def waited(self) -> timedelta:
        """The time since the record was written."""
        return age(self.record, self.now)

    @cached_property
    def broken_in(self) -> float | None:
        """Seconds until the update of the pod need not wait for others, 0 if it need not now; None if it is ready.

        At once if the first container does not run: no item is lost. After the deadline if a container fails, and after
        the time to warm up too if all run: such a pod does not become ready by itself, and others can be like it.
        """
        pod, containers = self.pod, self.target.containers
        running = [name for name in containers if runs(pod, name)]
        if containers[0] not in running:
            return 0
        since = past_time(pod.condition("Ready").last_transition_time, self.now)
        if pod.is_ready or since is None:
            return None
        failing = len(running) < len(containers) or not pod.serves(containers[0])
        limit = PROGRESS_DEADLINE if failing else self._deadline
        return max(0.0, (limit - (self.now - since)).total_seconds())

    @property
    def _deadline(self) -> timedelta:
        return PROGRESS_DEADLINE + timedelta(seconds=self.target.warm_up)

    @cached_property
    def wait(self) -> Wait:
        """What the pod waits for until its update is in effect."""
        for name in self.record.restarts:
            if (seconds := self.confirmed_in(name)) is not None:
                first = name == self.target.containers[0]
                doing = "is restarting and keeps its items" if first else f"is restarting its container {name}"
                return Wait(doing, seconds or None)
        return Wait("")

    def confirmed_in(self, name: str) -> float | None:
        """Seconds until the restart of a container is confirmed without an event, 0 if it needs one; None if it is.

        A new image: by its identity, or if that is the same, by the time that the container has run. New arguments:
        also by the end of the container before, which the agent caused; after any other end, by the pod, which is ready
        only with these arguments.
        """
        status, ran = self.pod.container_status(name), self.record.restarts[name]
        running = status.state.running
        if running is None or not has_restarted(self.pod, name, self.record):
            return 0
        left = self._left(past_time(running.started_at, self.now))
        if not ran.args:
            is_other = bool(ran.image) and status.image_id not in ("", ran.image)
            return None if is_other else left
        if left is None and ends(self.pod, self.record).get(name) != ran.id:
            return 0 if self.ready_since is None else self._left(self.ready_since, PROVEN)
        return left

    def _left(self, since: datetime | None, period: timedelta = SETTLED) -> float | None:
        """Seconds until a period has passed since a time and since the update; None if it has.

        What began before the update proves nothing: the status of a pod can be late, and the clock of its node slow.
        """
        times = [time for time in (since, past_time(self.record.since, self.now)) if time is not None]
        left = (period - (self.now - max(times))).total_seconds() if times else 0.0
        return left if left > 0 else None

    @cached_property
    def late(self) -> Wait:
        """The problem of an update that needs help, and its remedy. If it has none: the seconds until it does.

        No seconds: another message says why the update cannot be confirmed.
        """
        pod, restarts, agent = self.pod, self.record.restarts, self.target.rules.agent
        if any(pod.container_status(name).waiting.reason in _FAILED for name in restarts):
            return Wait("")
        needs_agent = any(ran.args for ran in restarts.values()) and not runs(pod, agent)
        limit = UNSEEN if needs_agent else self._deadline
        if self.waited < limit:
            return Wait("", (limit - self.waited).total_seconds())
        if needs_agent:
            return Wait(_stopped(pod, agent))
        minutes = int(limit.total_seconds() // 60)
        return Wait(f"it {self.wait.text}, but this was not confirmed within {minutes} minutes. {REPLACE_IT}")

    @cached_property
    def current(self) -> UpdateRecord:
        """The record that the next change continues: of an earlier update in effect, only what it has ended."""
        record = self.record
        if self.begun or record.failed or record.lowers or record.revision != revision_of(self.pod) or self.wait.text:
            return record
        return UpdateRecord("", ended=ends(self.pod, record))

    @cached_property
    def seen_in(self) -> float:
        """Seconds for which the next change waits, because the kubelet may not have seen the one before.

        0 if it has made it, if a container cannot start, or if the agent that must cause a restart does not run.
        """
        pod, record = self.pod, self.current
        if revision_of(pod) != record.revision:
            return 0
        blocked = any(
            not has_restarted(pod, name, record)
            and pod.container_status(name).waiting.reason not in _FAILED
            and (not ran.args or runs(pod, self.target.rules.agent))
            for name, ran in record.restarts.items()
        )
        return max(0.0, (UNSEEN - self.waited).total_seconds()) if blocked else 0

    @cached_property
    def restarted_in(self) -> float:
        """Seconds for which a container that has just ended delays a change, whose restart could be taken for its."""
        states = (status.state.terminated for status in self.pod.status.container_statuses)
        times = [past_time(end.finished_at, self.now) for end in states if end is not None]
        return max([0.0, *((RESTARTING - (self.now - at)).total_seconds() for at in times if at is not None)])

    @cached_property
    def forgettable_in(self) -> float:
        """Seconds until the record of a confirmed update can be removed: it explains the end of a container."""
        if not ends(self.pod, self.record):
            return 0
        ready = self.now - (self.ready_since or self.now)
        return max(0.0, failures.RECOVERY_PERIOD - ready.total_seconds())

    @cached_property
    def image_failure(self) -> str:
        """The reason why an image of the update cannot be pulled; empty if it can, or if it was pulled before.

        The kubelet reports the error of the image before for a moment, so the error must name the present one.
        """
        images = self.record.before.images if self.record.before else ()
        return next(filter(None, (_image_failure(self.pod, name, self.record) for name in images)), "")

    def is_failing(self) -> bool:
        """Whether the updated pod does not become ready by itself, so that no other pod may follow it.

        A container crashes or cannot start, or the pod is not ready for longer than a rollout may take.
        """
        if failures.failures([self.pod], self.now, _RULES):
            return True
        ready = self.pod.condition("Ready")
        begun = (self.pod.metadata.creation_timestamp, ready.last_transition_time, self.record.since)
        since = max((time for text in begun if (time := past_time(text, self.now)) is not None), default=self.now)
        return not ready.is_true and self.now - since >= self._deadline

    def problem(self, message: str, reason: str = c.APPLY_FAILED) -> Problem:
        """A problem that ends the update. `message`: without the name of the pod."""
        return Problem(reason, f"Pod {self.pod.name}: {message}")


def revision_of(pod: Pod) -> str:
    """The revision of the pod template, as its label says; empty without it."""
    return pod.metadata.labels.get(REVISION_LABEL, "")


def runs(pod: Pod, container: str) -> bool:
    """Whether a container runs now."""
    return pod.container_status(container).state.running is not None


def ready_since(pod: Pod, now: datetime) -> datetime | None:
    """The time at which the pod became ready; None if it is not ready."""
    return past_time(pod.condition("Ready").last_transition_time, now) or now if pod.is_ready else None


def has_restarted(pod: Pod, container: str, record: UpdateRecord) -> bool:
    """Whether another container runs or has run since the record was written, or need not."""
    ran = record.restarts.get(container)
    return ran is None or pod.container_status(container).container_id not in ("", ran.id)


def takes_back(pod: Pod, container: str, waiting: Explained, revision: str = "") -> bool:
    """Whether the error of an image is that of an update which is being taken back, or will be at once.

    The plan reports it, with the remedy for a pod that uses its previous image. `revision`: the target of the update;
    one to another revision is not taken back.
    """
    record = record_of(pod)
    if record.before is not None and revision_of(pod) == record.revision == revision:
        return container in record.before.images and bool(_image_failure(pod, container, record))
    is_restored = record.failed and record.reason == c.IMAGE_UNAVAILABLE and container in record.restarts
    return bool(is_restored) and f'"{pod.container(container).image}"' not in waiting.message


def _image_failure(pod: Pod, name: str, record: UpdateRecord) -> str:
    """The reason why the image of a container cannot be pulled; empty if it can.

    Also if it was pulled: another container has run, and not the previous image once more.
    """
    image, status, ran = pod.container(name).image, pod.container_status(name), record.restarts.get(name)
    if status.waiting.reason not in failures.IMAGE_REASONS or f'"{image}"' not in status.waiting.message:
        return ""
    if has_restarted(pod, name, record) and not (ran is not None and status.image_id == ran.image != ""):
        return ""
    return failures.image_problem(f"container {name}", image, status.waiting.message, MAX_CAUSE)


def _stopped(pod: Pod, agent: str) -> str:
    """The problem of an agent that does not run although it must restart memcached."""
    status = pod.container_status(agent)
    problem = f"its container {agent}, which restarts memcached with the new arguments,"
    if status.has_run:
        return f"{problem} is not running; see {failures.logs(pod, agent, previous=True)}. {REPLACE_IT}"
    cause = status.waiting.message or status.waiting.reason or "no reason given"
    return f"{problem} has not started: {texts.clause(cause, MAX_CAUSE)}"
