"""Finds why the claims of pods' ephemeral volumes are not created or not bound, from Events.

A condition of the pod says only that it waits. Why a claim cannot be created is in an Event about the pod, and why no
volume can be provisioned for it in one about the claim.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from memcached_api import conditions as c
from memcached_api.remedies import NONE, Action, Remedy, changed, corrected, lowered
from memcached_operator.findings.creation_remedies import NAME, QUOTA, RANGE
from memcached_operator.findings.finding import Problem
from memcached_operator.findings.rules import PodRules
from memcached_operator.kube import texts
from memcached_operator.kube.times import past_time
from memcached_operator.world.pod import Pod, by_name
from memcached_operator.world.snapshot import Messages

MAX_TEXT: Final = 600
"""Characters of an Event that are reported. Anyone who can create Events can write it."""

UNCREATED: Final = re.compile(r"ephemeral volume controller to create|was not created for pod")
"""The scheduler's messages while a claim is not created, or one of another owner has its name (kubernetes
pkg/scheduler/framework/plugins/volumebinding, component-helpers/storage/ephemeral)."""

EXCEEDED: Final = re.compile(rf"exceeded quota: {NAME},")
NO_CLASS: Final = re.compile(rf'storageclass\.storage\.k8s\.io "{NAME}" not found')
OUT_OF_RANGE: Final = re.compile(r" storage usage per PersistentVolumeClaim is ")


def waiting(pods: Iterable[Pod], now: datetime) -> list[tuple[Pod, float]]:
    """The pods whose claims may be the reason why they are on no node, and the seconds, the longest first."""
    pending = [pod for pod in pods if pod.is_active and _volumes(pod) and not pod.condition("PodScheduled").is_true]
    found = ((pod, (now - (_created(pod, now))).total_seconds()) for pod in pending)
    return sorted(found, key=lambda entry: (-entry[1], entry[0].name))


def selector(pod: Pod) -> str:
    """The field selector of the Events that say what the claims of a pod lack."""
    if UNCREATED.search(pod.condition("PodScheduled").message):
        return f"involvedObject.uid={pod.metadata.uid},source=ephemeral_volume,type=Warning"
    claim = f"{pod.name}-{_volumes(pod)[0]}"
    return f"involvedObject.kind=PersistentVolumeClaim,involvedObject.name={claim},type=Warning"


def problems(pods: Iterable[Pod], known: Messages, now: datetime, rules: PodRules) -> Iterator[Problem]:
    """One problem for the newest Event about the claims of each pod, in the order of the pods' names."""
    late = {pod.metadata.uid for pod, _ in waiting(pods, now)}
    for pod in by_name(pods):
        if pod.metadata.uid not in late:
            continue
        # An earlier pod of this name had a claim of the same name.
        texts_of = [each for each in known.get(pod.metadata.uid, ()) if each.seen >= _created(pod, now)]
        if texts_of:
            text = max(texts_of).text
            advice = rules.advice(_remedy(text, rules.claims))
            problem = f"Pod {pod.name}: its volume cannot be claimed: {texts.clause(text, MAX_TEXT)}"
            yield Problem(c.APPLY_FAILED, f"{problem}; {advice}" if advice else problem)


def _remedy(text: str, section: str) -> Remedy:
    """What a user can do. `section`: the fields of claims, `size` and `storageClassName`, in the spec."""
    size = f"{section}.size"
    if match := EXCEEDED.search(text):
        return QUOTA.naming(match[1]), lowered(size)
    if match := NO_CLASS.search(text):
        return Action(f"create StorageClass {match[1]}"), corrected(f"{section}.storageClassName")
    return (RANGE, changed(size)) if OUT_OF_RANGE.search(text) else NONE


def _volumes(pod: Pod) -> list[str]:
    return [volume.name for volume in pod.spec.volumes if volume.ephemeral is not None]


def _created(pod: Pod, now: datetime) -> datetime:
    return past_time(pod.metadata.creation_timestamp, now) or now
