"""Finds volumes that cannot be mounted because a Secret is missing, from the Events of the kubelet.

The operator has no permission on Secrets. A pod's status does not name the missing Secret, the kubelet's Events do.
"""

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from datetime import datetime

from memcached_api import conditions as c
from memcached_operator.findings.failures import Failure
from memcached_operator.findings.rules import PodRules
from memcached_operator.kube import texts
from memcached_operator.kube.times import past_time, time_of
from memcached_operator.world.pod import NO_STATE, NOT_REPORTED, ContainerStatus, Pod, by_name
from memcached_operator.world.snapshot import Message, Messages

READ_PERIOD = 60.0
"""Seconds between two reads of the Events of a pod that is late."""

RECENT = 300.0 + 122.0 + READ_PERIOD
"""Seconds after its last occurrence for which an Event counts.

The kubelet repeats a failed mount after at most 2 min 2 s (kubernetes pkg/util/goroutinemap/exponentialbackoff). After
a burst of 25, its spam filter allows one Event of a pod per 5 min (client-go tools/record/events_cache.go). So an Event
is at most 422 s old when it is repeated. It is read at most READ_PERIOD later.
"""

CREATING_REASONS = ("ContainerCreating", "PodInitializing")
"""Waiting reasons of a container whose pod may lack a volume (kubernetes pkg/kubelet/kubelet_pods.go)."""

MAX_SECRETS = 3
"""Maximum Secrets in a message that may be the one that lacks a key."""

SET_UP = re.compile(r'MountVolume\.SetUp failed for volume "([^"]{1,63})"')
"""A failed mount. The error follows (kubernetes pkg/volume/util/types)."""

UNMOUNTED = re.compile(r"unmounted volumes=\[([^\[\]]*)\]")
"""The volumes for which a pod still waits, without an error. The spam filter may drop the Event with the error in favor
of this one (kubernetes pkg/kubelet/volumemanager)."""

NOT_FOUND = re.compile(r'secrets? "([-.a-z0-9]{1,253})" not found')
"""A missing Secret. Other errors of a Secret are transient: `object … not registered`, `failed to sync secret cache`
(kubernetes pkg/kubelet/util/manager)."""

NO_KEY = re.compile(r"references non-existent secret key: ([-._a-zA-Z0-9]{1,253})")
"""A missing key of a Secret (kubernetes pkg/volume/secret). The text does not name the Secret."""

IMMUTABLE = (
    "use a Secret with another name if this one is immutable, which replaces the pods, and the items of a Memcached "
    "are lost"
)
"""The remedy for a missing key of an immutable Secret: the kubelet keeps the content of a deleted one
(kubernetes pkg/kubelet/util/manager)."""


def subject(text: str) -> Hashable | None:
    """What an Event with this message is about; None if it is not about volumes. Those about missing Secrets are apart,
    because others can be as new."""
    match = SET_UP.search(text) or UNMOUNTED.search(text)
    return match and (match[0], _is_missing(text))


def waiting(pods: Iterable[Pod], now: datetime) -> list[tuple[str, float]]:
    """The uids of the pods that wait for volumes, if there are any of Secrets, and the seconds, the longest first."""
    times = ((since, pod.metadata.uid) for pod in _mounting(pods) if (since := _waits_since(pod, now)) is not None)
    return [(uid, (now - since).total_seconds()) for since, uid in sorted(times)]


def mounted(pods: Iterable[Pod]) -> list[Pod]:
    """The pods that have their volumes, if there are any of Secrets."""
    return sorted((pod for pod in _mounting(pods) if _mounted_since(pod) is not None), key=lambda pod: pod.metadata.uid)


def _mounting(pods: Iterable[Pod]) -> Iterator[Pod]:
    return (pod for pod in pods if pod.is_active and _secrets_by_volume(pod))


def failures(pods: Iterable[Pod], known: Messages, now: datetime, rules: PodRules) -> list[Failure]:
    """One failure per volume without its Secret, in the order of the pods' names. `known`: as of their Events."""
    reported = by_name(pod for pod in pods if known.get(pod.metadata.uid) and pod.is_active)
    return [failure for pod in reported for failure in _pod_failures(pod, known[pod.metadata.uid], now, rules)]


def _pod_failures(pod: Pod, messages: Iterable[Message], now: datetime, rules: PodRules) -> Iterator[Failure]:
    waits = _waits_since(pod, now) is not None
    since = None if waits else _mounted_since(pod)
    if not waits and since is None:
        return
    occurrences = _by_volume(messages)
    for volume, secrets in _secrets_by_volume(pod).items():
        occurrence = occurrences.get(volume)
        # The times of a pod and of the Events about it are by the same clock, in seconds.
        if occurrence is None or (since is not None and occurrence.seen <= since):
            continue
        clears_in = RECENT - max(0.0, (now - occurrence.seen).total_seconds())
        if clears_in > 0 and (text := _explanation(occurrence.text, secrets, mounted=not waits)):
            foreign = "" if rules.has_volume(volume) else f", which is not part of this {rules.kind},"
            message = f"Pod {pod.name}: volume {texts.name(volume)}{foreign} {text}"
            yield Failure(c.SECRET_UNAVAILABLE, message, clears_in)


def _by_volume(found: Iterable[Message]) -> dict[str, Message]:
    """The last failed mount by the name of the volume, with the time when it was last reported as not mounted."""
    messages: dict[str, tuple[datetime, bool, str]] = {}
    unmounted: dict[str, datetime] = {}
    for seen, text in found:
        if match := SET_UP.search(text):
            # If two are equally old, the one about a missing Secret counts.
            entry = (seen, _is_missing(text), text)
            messages[match[1]] = max(entry, messages.get(match[1], entry))
        elif match := UNMOUNTED.search(text):
            for volume in match[1].split():
                unmounted[volume] = max(seen, unmounted.get(volume, seen))
    return {
        volume: Message(max(seen, unmounted.get(volume, seen)), text) for volume, (seen, _, text) in messages.items()
    }


def _is_missing(text: str) -> bool:
    return bool(NOT_FOUND.search(text) or NO_KEY.search(text))


def _explanation(text: str, secrets: Mapping[str, frozenset[str]], *, mounted: bool) -> str:
    """The cause and the remedy; empty if the Event is not about a missing Secret of the volume.

    Of the Event's text, only names are used: everyone who can create Events can write it. `secrets`: the keys that the
    volume names, by Secret.
    """
    names = [name for name in dict.fromkeys(NOT_FOUND.findall(text)) if name in secrets]
    keys = list(dict.fromkeys(NO_KEY.findall(text)))
    causes = [f'secret "{name}" not found' for name in names]
    causes += [f"references non-existent secret key: {key}" for key in keys]
    if not causes:
        return ""
    remedies = [f"create the Secret {' and the Secret '.join(names)} in this namespace"] if names else []
    for key in keys:
        having = [name for name, items in secrets.items() if key in items] or list(secrets)
        listed = " or ".join(texts.name(name) for name in having[:MAX_SECRETS])
        remedies.append(f"add the key {key} to the Secret {listed}")
    remedies += [IMMUTABLE] * bool(keys)
    verb = "cannot be updated" if mounted else "cannot be mounted"
    running = ["the pod keeps running with the previous files"] if mounted else []
    return f"{verb}: {'; '.join([', '.join(causes), *running, *remedies])}"


def _secrets_by_volume(pod: Pod) -> dict[str, dict[str, frozenset[str]]]:
    """The keys that a pod requires, by volume and Secret. Optional Secrets may be missing, so they are left out."""
    by_volume: dict[str, dict[str, frozenset[str]]] = {}
    for volume in pod.spec.volumes:
        projections = volume.projected.sources if volume.projected else ()
        secrets: dict[str, frozenset[str]] = {}
        for source in (volume.secret, *(each.secret for each in projections)):
            if source is not None and source.name and not source.optional:
                secrets[source.name] = secrets.get(source.name, frozenset()).union(each.key for each in source.items)
        if secrets:
            by_volume[volume.name] = secrets
    return by_volume


def _waits_since(pod: Pod, now: datetime) -> datetime | None:
    """The time since which a scheduled pod waits for its volumes; None if it does not.

    A pod whose sandbox is created has its volumes (condition PodReadyToStartContainers), also while it pulls an image.
    """
    scheduled, started = pod.condition("PodScheduled"), pod.condition("PodReadyToStartContainers")
    if not scheduled.is_true or started.is_true:
        return None
    if not all(map(_is_creating, _containers(pod))):
        return None
    # After a restart of its node, a pod has waited since it lost its sandbox.
    times = (past_time(each.last_transition_time, now) for each in (scheduled, started) if each is not NOT_REPORTED)
    return max((since for since in times if since is not None), default=now)


def _mounted_since(pod: Pod) -> datetime | None:
    """The time since which a pod has its volumes; None if that is unknown."""
    started = pod.condition("PodReadyToStartContainers")
    if started.is_true and (since := time_of(started.last_transition_time)) is not None:
        return since
    running = (each.state.running.started_at for each in _containers(pod) if each.state.running)
    return min((start for text in running if (start := time_of(text)) is not None), default=None)


def _containers(pod: Pod) -> tuple[ContainerStatus, ...]:
    return (*pod.status.init_container_statuses, *pod.status.container_statuses)


def _is_creating(status: ContainerStatus) -> bool:
    """True for a container that waits for its pod. Without a state, the kubelet has not reported it yet."""
    return status.state == NO_STATE or status.waiting.reason in CREATING_REASONS
