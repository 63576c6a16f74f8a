"""Whether an update in place is in effect in a pod, and what it still waits for.

Only identities and times count. A restart count can fall; the image that a status names can be another name of the same
image; a status can be of a container that started before the kubelet saw the change.
"""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from memcached_operator.findings.failures import (
    IMAGE_REASONS,
    RECOVERY_PERIOD,
    START_REASONS,
    failures,
    image_problem,
    logs,
)
from memcached_operator.findings.rollout import PROGRESS_DEADLINE
from memcached_operator.findings.rules import PodRules
from memcached_operator.kube import texts
from memcached_operator.kube.times import past_time
from memcached_operator.memcached.updates.amounts import MAX_CAUSE
from memcached_operator.memcached.updates.observed import (
    never_started,
    ready_since,
    revision_of,
    runs,
)
from memcached_operator.memcached.updates.record import (
    Ran,
    UpdateRecord,
    age,
    ends,
    is_planned_end,
    is_taken_back,
    record_of,
)
from memcached_operator.memcached.updates.target import Target
from memcached_operator.world.pod import Explained, Pod

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


class Wait(NamedTuple):
    """The reason why a pod waits, for messages. `seconds`: until that can be over without an event, or None."""

    doing: str
    seconds: float | None = None


def unconfirmed(pod: Pod, record: UpdateRecord, target: Target, now: datetime) -> Wait | None:
    """The reason why a pod waits until its update is in effect; None if it is in effect."""
    for name, ran in record.restarts.items():
        if (seconds := seconds_until_confirmed(pod, name, ran, record, now)) is not None:
            first = name == target.containers[0]
            doing = "is restarting and keeps its items" if first else f"is restarting its container {name}"
            return Wait(doing, seconds or None)
    return None


def seconds_until_confirmed(pod: Pod, name: str, ran: Ran, record: UpdateRecord, now: datetime) -> float | None:
    """Seconds until the restart of a container is confirmed without an event, 0 if an event must come; None if it is.

    A new image: by its identity, or if that is the same, by the time that the container has run. New arguments: also by
    the end of the container before, which the agent caused; after any other end, by the pod, which is ready only with
    these arguments.
    """
    status = pod.container_status(name)
    running = status.state.running
    if running is None or not has_restarted(pod, name, record):
        return 0
    left = _left(past_time(running.started_at, now), record, now)
    if not ran.args:
        is_other = bool(ran.image) and status.image_id not in ("", ran.image)
        return None if is_other else left
    if left is None and ends(pod, record).get(name) != ran.id:
        since = ready_since(pod, now)
        return 0 if since is None else _left(since, record, now, PROVEN)
    return left


class Overdue(NamedTuple):
    """The problem of an update that needs help, and its remedy; empty if it does not, and then `seconds` until it does.

    No seconds: another message says why the update cannot be confirmed.
    """

    problem: str
    seconds: float | None = None


def overdue(pod: Pod, record: UpdateRecord, target: Target, wait: Wait, now: datetime) -> Overdue:
    """Whether an unconfirmed update needs help."""
    agent, waited = target.rules.agent, age(record, now)
    if any(pod.container_status(name).waiting.reason in _FAILED for name in record.restarts):
        return Overdue("")
    if any(ran.args for ran in record.restarts.values()) and not runs(pod, agent):
        if waited >= UNSEEN:
            return Overdue(_stopped(pod, agent))
        return Overdue("", (UNSEEN - waited).total_seconds())
    limit = PROGRESS_DEADLINE + timedelta(seconds=target.warm_up)
    if waited < limit:
        return Overdue("", (limit - waited).total_seconds())
    minutes = int(limit.total_seconds() // 60)
    return Overdue(f"it {wait.doing}, but this was not confirmed within {minutes} minutes. {REPLACE_IT}")


def _stopped(pod: Pod, agent: str) -> str:
    """The problem of an agent that does not run although it must restart memcached."""
    problem = f"its container {agent}, which restarts memcached with the new arguments,"
    if never_started(pod, agent):
        waiting = pod.container_status(agent).waiting
        cause = waiting.message or waiting.reason or "no reason given"
        return f"{problem} has not started: {texts.clause(cause, MAX_CAUSE)}"
    return f"{problem} is not running; see {logs(pod, agent, previous=True)}. {REPLACE_IT}"


def seconds_until_seen(pod: Pod, record: UpdateRecord, target: Target, now: datetime) -> float:
    """Seconds for which the next change waits, because the kubelet may not have seen the one before.

    0 if it has made it, if a container cannot start, or if the agent that must cause a restart does not run.
    """
    if revision_of(pod) != record.revision:
        return 0
    blocked = any(
        not has_restarted(pod, name, record)
        and pod.container_status(name).waiting.reason not in _FAILED
        and (not ran.args or runs(pod, target.rules.agent))
        for name, ran in record.restarts.items()
    )
    return max(0.0, (UNSEEN - age(record, now)).total_seconds()) if blocked else 0


def has_restarted(pod: Pod, container: str, record: UpdateRecord) -> bool:
    """Whether another container runs or has run since the record was written, or need not."""
    ran = record.restarts.get(container)
    return ran is None or pod.container_status(container).container_id not in ("", ran.id)


def seconds_until_forgettable(pod: Pod, record: UpdateRecord, now: datetime) -> float:
    """Seconds until the record of a confirmed update can be removed: until then it explains the end of a container."""
    if not ends(pod, record):
        return 0
    since = ready_since(pod, now)
    return RECOVERY_PERIOD if since is None else max(0.0, RECOVERY_PERIOD - (now - since).total_seconds())


def image_failure(pod: Pod, record: UpdateRecord) -> str:
    """The reason why an image of the update cannot be pulled; empty if it can, or if it was pulled before.

    The kubelet reports the error of the image before for a moment, so the error must name the present one.
    """
    failures = (_image_failure(pod, name, record) for name in (record.before.images if record.before else ()))
    return next(filter(None, failures), "")


def takes_back(pod: Pod, container: str, waiting: Explained, revision: str = "") -> bool:
    """Whether the error of an image is that of an update which is being taken back, or will be at once.

    The plan reports it, with the remedy for a pod that uses its previous image. `revision`: the target of the update;
    one to another revision is not taken back.
    """
    record = record_of(pod)
    if record.before is None or not revision_of(pod) == record.revision == revision:
        return is_taken_back(pod, container, waiting)
    return container in record.before.images and bool(_image_failure(pod, container, record))


def _image_failure(pod: Pod, name: str, record: UpdateRecord) -> str:
    """The reason why the image of a container cannot be pulled; empty if it can."""
    image, waiting = pod.container(name).image, pod.container_status(name).waiting
    is_failed = waiting.reason in IMAGE_REASONS and f'"{image}"' in waiting.message
    if is_failed and not _was_pulled(pod, name, record):
        return image_problem(f"container {name}", image, waiting.message, MAX_CAUSE)
    return ""


def is_failing(pod: Pod, target: Target, now: datetime) -> bool:
    """Whether a pod that has been updated does not become ready by itself, so that no other pod may follow it.

    A container crashes or cannot start, or the pod is not ready for longer than a rollout may take.
    """
    if failures([pod], now, _RULES):
        return True
    ready, record = pod.condition("Ready"), record_of(pod)
    begun = (pod.metadata.creation_timestamp, ready.last_transition_time, record.since)
    since = max((time for text in begun if (time := past_time(text, now)) is not None), default=now)
    return not ready.is_true and now - since >= PROGRESS_DEADLINE + timedelta(seconds=target.warm_up)


def _was_pulled(pod: Pod, container: str, record: UpdateRecord) -> bool:
    """Whether the image of the update has run. The container before can have started once more with its own image."""
    ran = record.restarts.get(container)
    has_same = ran is not None and pod.container_status(container).image_id == ran.image != ""
    return has_restarted(pod, container, record) and not has_same


def _left(since: datetime | None, record: UpdateRecord, now: datetime, period: timedelta = SETTLED) -> float | None:
    """Seconds until a period has passed since a time and since the update; None if it has.

    What began before the update proves nothing: the status of a pod can be late, and the clock of its node slow.
    """
    times = [time for time in (since, past_time(record.since, now)) if time is not None]
    left = (period - (now - max(times))).total_seconds() if times else 0.0
    return left if left > 0 else None


_FAILED: Final = IMAGE_REASONS | START_REASONS
_RULES: Final = PodRules("", is_planned=is_planned_end)
