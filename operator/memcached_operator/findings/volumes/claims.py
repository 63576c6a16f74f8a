"""Finds why the claims of pods' ephemeral volumes are not created or not bound, from Events.

A condition of the pod says only that it waits. Why a claim cannot be created is in an Event about the pod, and why no
volume can be provisioned for it in one about the claim.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Final

from memcached_api import conditions as c
from memcached_api.remedies import NONE, Action, Remedy, changed, corrected, lowered
from memcached_operator.findings.creation_remedies import NAME, RANGE
from memcached_operator.findings.finding import Problem
from memcached_operator.findings.obstacles import UNCREATED_CLAIM
from memcached_operator.findings.rules import PodRules
from memcached_operator.kube import texts
from memcached_operator.kube.times import past_time
from memcached_operator.world.pod import Pod, by_name
from memcached_operator.world.snapshot import Messages

MAX_TEXT: Final = 600
"""Characters of an Event that are reported. Anyone who can create Events can write it."""

UNCREATED: Final = re.compile(UNCREATED_CLAIM)
WAITS: Final = re.compile(r"(?i)persistent ?volume|binding volumes|was not created for pod")
"""A part of each of the scheduler's messages about claims and volumes. There is none while one is provisioned."""

OF_POD: Final = re.compile(r"ephemeral volume ([-a-z0-9]{1,63}): ")
"""The beginning of an Event about a pod (kubernetes pkg/controller/volume/ephemeral)."""
ATTEMPT: Final = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
"""The ID of an attempt or a request, which differs in each Event of a driver."""

EXCEEDED: Final = re.compile(rf"exceeded quota: {NAME},")
NO_CLASS: Final = re.compile(rf'storageclass\.storage\.k8s\.io "{NAME}" not found')
NOT_OWNER: Final = re.compile(rf"PVC {NAME}/{NAME} was not created for pod ")
CLAIMS_QUOTA: Final = re.compile(rf"exceeded quota: {NAME}, requested: \S{{0,300}}persistentvolumeclaims=")
OUT_OF_RANGE: Final = re.compile(r" storage usage per PersistentVolumeClaim is ")


def waiting(pods: Iterable[Pod], now: datetime) -> list[tuple[Pod, float]]:
    """The pods whose claims may be the reason why they are on no node, and the seconds, the longest first."""
    found = ((pod, (now - _created(pod, now)).total_seconds()) for pod in pods if _waits(pod))
    return sorted(found, key=lambda entry: (-entry[1], entry[0].name))


def _waits(pod: Pod) -> bool:
    if not pod.is_active or not _volumes(pod):
        return False
    scheduled = pod.condition("PodScheduled")
    return not scheduled.is_true and (not scheduled.message or bool(WAITS.search(scheduled.message)))


def is_created(pod: Pod) -> bool:
    """Whether the claims of a waiting pod may exist, so that Events about them say what they lack."""
    return not UNCREATED.search(pod.condition("PodScheduled").message)


def selector(pod: Pod) -> str:
    """The field selector of the Events that say what the claims of a pod lack."""
    if not is_created(pod):
        return f"involvedObject.uid={pod.metadata.uid},source=ephemeral_volume,reason=FailedBinding"
    claim = f"{pod.name}-{_volumes(pod)[0]}"
    return f"involvedObject.kind=PersistentVolumeClaim,involvedObject.name={claim},reason=ProvisioningFailed"


def problems(pods: Iterable[Pod], known: Messages, now: datetime, rules: PodRules) -> Iterator[Problem]:
    """One problem for the newest Event about the claims of each pod, in the order of the pods' names."""
    for pod in by_name(pod for pod in pods if known.get(pod.metadata.uid) and _waits(pod)):
        # An earlier pod of this name had a claim of the same name.
        found = [each for each in known[pod.metadata.uid] if each.seen >= _created(pod, now)]
        if found:
            yield Problem(c.APPLY_FAILED, _message(pod, max(found).text, rules))


def _message(pod: Pod, text: str, rules: PodRules) -> str:
    """What the newest Event about the claims of a pod says, with a remedy."""
    volume = OF_POD.match(text)
    is_own = volume is None or rules.has_volume(volume[1])
    advice = rules.advice(_remedy(text, rules.claims if is_own else ""))
    problem = f"Pod {pod.name}: its volume cannot be claimed: {texts.clause(ATTEMPT.sub('…', text), MAX_TEXT)}"
    return f"{problem}; {advice}" if advice else problem


def _remedy(text: str, section: str) -> Remedy:
    """What a user can do. `section`: that of `size` and `storageClassName` in the spec; empty without one."""
    found = next((actions(match, section) for pattern, actions in _REMEDIES if (match := pattern.search(text))), NONE)
    return found if section else tuple(action for action in found if not action.fields)


_REMEDIES: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], Remedy]], ...]] = (
    (CLAIMS_QUOTA, lambda match, _: (_quota(match[1]), lowered("spec.size"))),
    (EXCEEDED, lambda match, section: (_quota(match[1]), lowered(f"{section}.size"))),
    (
        NO_CLASS,
        lambda match, section: (Action(f"create StorageClass {match[1]}"), corrected(f"{section}.storageClassName")),
    ),
    (OUT_OF_RANGE, lambda _, section: (RANGE, changed(f"{section}.size"))),
    (NOT_OWNER, lambda match, _: (Action(f"delete PersistentVolumeClaim {match[2]} if nothing else needs it"),)),
)
"""What a user can do, by a part of the Event, from the section of the spec."""


def _quota(name: str) -> Action:
    """Raise a quota. kube-controller-manager tries again after at most 1000 s (client-go util/workqueue)."""
    return Action(f"raise ResourceQuota {name}, which has an effect within 17 minutes, or at once for a new pod")


def _volumes(pod: Pod) -> list[str]:
    return [volume.name for volume in pod.spec.volumes if volume.ephemeral is not None]


def _created(pod: Pod, now: datetime) -> datetime:
    return past_time(pod.metadata.creation_timestamp, now) or now
