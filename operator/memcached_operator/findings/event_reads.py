"""Decides of which late objects Events are read to find the cause, when, and what of the Events is kept.

Anyone who can create Events in a namespace can write such ones, too. They affect only the statuses in it.
"""

from collections.abc import Callable, Hashable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from memcached_api import conditions as c
from memcached_operator.findings import creation, image_errors
from memcached_operator.findings.obstacles import CLAIM_PERIOD
from memcached_operator.findings.rules import PodRules
from memcached_operator.findings.volumes import claims, mounts
from memcached_operator.kube.resource import STATEFULSETS, Key, key_of, nested_list
from memcached_operator.world.snapshot import Messages, Snapshot

MAX_PODS: Final = 3
"""Maximum pods of one object that are late, for each cause. Pods with the same template usually lack the same."""

MAX_SLOTS: Final = 3
"""Maximum missing slots of one object that are looked for among the pods of other owners."""

VOLUME_PERIOD: Final = 10.0
"""Seconds that a scheduled pod may wait for its volumes before it is late: a normal start takes less."""

CREATION_PERIOD: Final = 4.0
"""Seconds for which pods may be missing before they are late: a normal creation takes less than one."""

PROVISION_PERIOD: Final = 45.0
"""Seconds that a driver may take to provide a volume. Some report errors meanwhile, and succeed."""

RUNNING_PERIOD: Final = 120.0
"""Minimum seconds between two reads for an object whose pods have their volumes, in case a Secret was deleted
afterwards. Only a reconcile with another cause reads them, at the latest the next resync."""

_ANY: Final = PodRules("")
"""The rules if only the times of failures matter."""


@dataclass(frozen=True)
class Source:
    """The Events in which the cause is found."""

    fields: str
    """Their field selector, with the uid of the late object."""
    subject: Callable[[str, str, "Late"], Hashable | None]
    """What an Event is about, from its message and the name of its object; None if it is not needed. Of each subject,
    the newest message is kept."""
    max_age: float = float("inf")
    """Seconds after its last occurrence for which an Event counts."""


@dataclass(frozen=True)
class Late:
    """An object that is late: a pod, or a workload that lacks pods or has too many."""

    uid: str
    source: Source
    reported: bool
    """The status reports such a cause, so that it must not be written before the first read."""
    after: float = 0.0
    """Seconds until the first read."""
    period: float = mounts.READ_PERIOD
    """Minimum seconds between two reads."""
    max_period: float = mounts.READ_PERIOD
    """The same after a long time: a tenth of it, up to this number of seconds."""
    urgent: bool = True
    """It is read without a further reconcile, and also soon after a start of this process."""
    images: frozenset[str] = frozenset()
    """The images of a pod that Events must explain. With another one, what was read has no use."""
    workload: Key | None = None
    """The workload."""
    slots: tuple[str, ...] = ()
    """Its missing pods, of which another owner may have the names."""
    retry_after: float = float("inf")
    """Seconds for which it must be late before its controller is made to try again, at each read."""


def late(snapshot: Snapshot, known: Messages, now: datetime) -> list[Late]:
    """The objects that are late, each once. `known`: the messages that were read before."""
    reasons = {each.get("reason") for each in nested_list(snapshot.cr, "status", "conditions")}
    pods = {each.uid: each for each in _pods(snapshot, known, now, reasons)}
    return [*pods.values(), *_claims(snapshot, now, reasons), *_workload(snapshot, reasons)]


def _pods(snapshot: Snapshot, known: Messages, now: datetime, reasons: AbstractSet[str | None]) -> Iterator[Late]:
    """The pods that wait for volumes or images, the latter last, and one that has volumes of Secrets."""
    reported = c.SECRET_UNAVAILABLE in reasons
    waiting, mounted = mounts.waiting(snapshot.pods, now), mounts.mounted(snapshot.pods)
    for uid, seconds in waiting[:MAX_PODS]:
        yield Late(uid, _POD, reported, after=max(0.0, VOLUME_PERIOD - seconds))
    for pod in mounted[:1]:
        lacks = bool(mounts.failures([pod], known, now, _ANY))
        if lacks or not waiting:
            urgent = lacks or reported
            period = mounts.READ_PERIOD if urgent else RUNNING_PERIOD
            yield Late(pod.metadata.uid, _POD, reported, period=period, urgent=urgent)
    for pod, images in image_errors.unexplained(snapshot.pods)[:MAX_PODS]:
        yield Late(pod.metadata.uid, _POD, c.IMAGE_UNAVAILABLE in reasons, images=images)


def _claims(snapshot: Snapshot, now: datetime, reasons: AbstractSet[str | None]) -> Iterator[Late]:
    """The pods that wait for a claim."""
    for pod, seconds in claims.waiting(snapshot.pods, now)[:MAX_PODS]:
        source = Source(claims.selector(pod), _of_claim, creation.RECENT)
        period = PROVISION_PERIOD if claims.is_created(pod) else CLAIM_PERIOD.total_seconds()
        after = max(0.0, period - seconds)
        yield Late(pod.metadata.uid, source, c.APPLY_FAILED in reasons, after=after)


def _workload(snapshot: Snapshot, reasons: AbstractSet[str | None]) -> Iterator[Late]:
    """The workload, if it lacks pods or has too many."""
    resource, live = creation.workload(snapshot)
    if live is None or live["metadata"].get("deletionTimestamp") or not creation.is_rejected(snapshot):
        return
    reported = not reasons.isdisjoint((c.APPLY_FAILED, c.CONFLICT))
    yield Late(
        live["metadata"]["uid"],
        _STATEFUL_SET if resource == STATEFULSETS else _REPLICA_SETS,
        reported,
        after=0.0 if reported else CREATION_PERIOD,
        period=creation.RETRY_PERIOD,
        max_period=creation.MAX_PERIOD,
        workload=key_of(resource, live),
        slots=tuple(creation.missing_slots(snapshot)[:MAX_SLOTS]),
        retry_after=creation.RETRY_PERIOD if creation.is_observed(resource, live) else float("inf"),
    )


def _of_pod(text: str, _: str, pod: Late) -> Hashable | None:
    return mounts.subject(text) or image_errors.subject(text, pod.images)


def _of_claim(text: str, _name: str, pod: Late) -> Hashable | None:
    return pod.uid if text.strip() else None  # the newest Event of all


def _of_workload(text: str, name: str, row: Late) -> Hashable | None:
    return creation.subject(text) if row.workload and creation.is_about(name, row.workload) else None


_POD: Final = Source("involvedObject.uid={},source=kubelet,type=Warning", _of_pod)
"""Those of the kubelet (kubernetes pkg/kubelet/events)."""

_STATEFUL_SET: Final = Source("involvedObject.uid={},type=Warning", _of_workload, creation.RECENT)
_REPLICA_SETS: Final = Source("involvedObject.kind=ReplicaSet,type=Warning", _of_workload, creation.RECENT)
"""Those of all ReplicaSets of a namespace: the uid of a Deployment's is not known."""
