"""Finds volumes that cannot be mounted because a Secret is missing, from the Events of the kubelet.

The operator has no permission on Secrets. A pod's status does not name the missing Secret, the kubelet's Events do.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memcached_api import conditions as c
from memcached_operator.findings.failures import Failure
from memcached_operator.findings.rules import PodRules
from memcached_operator.kube import texts
from memcached_operator.kube.resource import Object, nested_list, nested_map
from memcached_operator.kube.times import last_seen, past_time, time_of
from memcached_operator.world.pods import condition_of, is_active

FIELDS = "involvedObject.uid={},reason=FailedMount,source=kubelet"
"""The field selector of the kubelet's Events about the mounts of a pod with this uid (kubernetes pkg/kubelet/events).

Anyone who can create Events in the namespace can write such ones too. They affect only the status of the object that
owns the pod, and of their text only names are used.
"""

MAX_EVENTS = 50
"""Maximum Events that are read of one pod. The kubelet counts repetitions in one Event, and merges more than 10
different ones (client-go tools/record/events_cache.go)."""

MAX_KEPT = 12
"""Maximum Events that are kept of one pod: more than a kubelet writes before it merges them."""

START_PERIOD = 10.0
"""Seconds that a scheduled pod may wait for its volumes before its Events are needed: a normal start takes less."""

READ_PERIOD = 60.0
"""Minimum seconds between two reads of the Events of one object."""

RUNNING_PERIOD = 120.0
"""Minimum seconds between two reads for an object whose pods have their volumes, in case a Secret was deleted
afterwards. Only a reconcile with another cause reads them, at the latest the next resync."""

MAX_PODS = 3
"""Maximum pods of one object whose waiting is explained. Pods with the same template usually lack the same Secret."""

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

MAX_TEXT = 4096
"""Characters of a message that are read. A kubelet's is as long as the names of the volumes of a pod."""

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

_ANY = PodRules("")
"""The rules if only the times of failures matter."""


@dataclass(frozen=True)
class Demand:
    """The pods of an object whose Events are needed.

    `after`: seconds until then. `period`: minimum seconds between two reads.
    """

    uids: tuple[str, ...]
    after: float
    period: float

    @property
    def urgent(self) -> bool:
        """True if a pod waits, or if a problem has been reported."""
        return self.period < RUNNING_PERIOD


def demand(pods: Iterable[Object], events: Sequence[Object], now: datetime, *, reported: bool) -> Demand | None:
    """The pods whose Events are needed; None if no pod has a volume of a Secret.

    `events`: those that are known. `reported`: the status of the object reports an unavailable Secret.
    """
    mounting = [pod for pod in pods if is_active(pod) and _secrets_by_volume(pod)]
    waiting = sorted((since, _uid(pod)) for pod in mounting if (since := _waits_since(pod, now)) is not None)
    if waiting:
        after = max(0.0, START_PERIOD - (now - waiting[0][0]).total_seconds())
        return Demand(tuple(uid for _, uid in waiting[:MAX_PODS]), after, READ_PERIOD)
    mounted = sorted(_uid(pod) for pod in mounting if _mounted_since(pod) is not None)
    if not mounted:
        return None
    # An expiring problem is read again before it is cleared.
    expiring = [failure.clears_in or 0.0 for failure in failures(mounting, events, now, _ANY)]
    if expiring:
        return Demand((mounted[0],), max(0.0, min(expiring) - READ_PERIOD), READ_PERIOD)
    return Demand((mounted[0],), 0.0, READ_PERIOD if reported else RUNNING_PERIOD)


def relevant(events: Iterable[Object]) -> Iterator[Object]:
    """The Events that `failures` needs, without what changes at each repetition except their times."""
    for event in events:
        text = (event.get("message") or "")[:MAX_TEXT]
        if SET_UP.search(text) or UNMOUNTED.search(text):
            series = nested_map(event, "series").get("lastObservedTime")
            yield {
                "involvedObject": {"uid": nested_map(event, "involvedObject").get("uid")},
                "message": text,
                **{name: event[name] for name in ("lastTimestamp", "eventTime") if name in event},
                **({"series": {"lastObservedTime": series}} if series else {}),
            }


def newest(events: Sequence[Object]) -> list[Object]:
    """The Events of one pod that are kept: the last MAX_KEPT. Anyone can write larger ones than a kubelet."""
    dated = [(seen, number) for number, event in enumerate(events) if (seen := last_seen(event)) is not None]
    return [events[number] for _, number in sorted(dated)[-MAX_KEPT:]]


def failures(pods: Iterable[Object], events: Sequence[Object], now: datetime, rules: PodRules) -> list[Failure]:
    """One failure per volume without its Secret, in the order of the pods' names."""
    by_uid: dict[str, list[Object]] = {}
    for event in events:
        by_uid.setdefault(nested_map(event, "involvedObject").get("uid", ""), []).append(event)
    if not by_uid:
        return []
    pod_failures: list[Failure] = []
    for pod in sorted(pods, key=lambda pod: pod["metadata"]["name"]):
        if is_active(pod) and _uid(pod) in by_uid:
            pod_failures += _pod_failures(pod, by_uid[_uid(pod)], now, rules)
    return pod_failures


def _pod_failures(pod: Object, events: Iterable[Object], now: datetime, rules: PodRules) -> Iterator[Failure]:
    waits = _waits_since(pod, now) is not None
    since = None if waits else _mounted_since(pod)
    if not waits and since is None:
        return
    occurrences = _by_volume(events)
    for volume, secrets in _secrets_by_volume(pod).items():
        occurrence = occurrences.get(volume)
        # The times of a pod and of the Events about it are by the same clock, in seconds.
        if occurrence is None or (since is not None and occurrence.seen <= since):
            continue
        clears_in = RECENT - max(0.0, (now - occurrence.seen).total_seconds())
        if clears_in > 0 and (text := _explanation(occurrence.message, secrets, mounted=not waits)):
            foreign = "" if rules.has_volume(volume) else f", which is not part of this {rules.kind},"
            message = f"Pod {pod['metadata']['name']}: volume {texts.name(volume)}{foreign} {text}"
            yield Failure(c.SECRET_UNAVAILABLE, message, clears_in)


@dataclass(frozen=True)
class _Occurrence:
    """The last failed mount of a volume: its message, and when the volume was last reported as not mounted."""

    message: str
    seen: datetime


def _by_volume(events: Iterable[Object]) -> dict[str, _Occurrence]:
    """The last failed mount by the name of the volume."""
    messages: dict[str, tuple[datetime, bool, str]] = {}
    unmounted: dict[str, datetime] = {}
    for event in events:
        seen, text = last_seen(event), event.get("message") or ""
        if seen is None:
            continue
        if match := SET_UP.search(text):
            # If two are equally old, the one about a missing Secret counts.
            entry = (seen, _is_missing(text), text)
            messages[match[1]] = max(entry, messages.get(match[1], entry))
        elif match := UNMOUNTED.search(text):
            for volume in match[1].split():
                unmounted[volume] = max(seen, unmounted.get(volume, seen))
    return {
        volume: _Occurrence(text, max(seen, unmounted.get(volume, seen)))
        for volume, (seen, _, text) in messages.items()
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


def _secrets_by_volume(pod: Object) -> dict[str, dict[str, frozenset[str]]]:
    """The keys that a pod requires, by volume and Secret. Optional Secrets may be missing, so they are left out."""
    by_volume: dict[str, dict[str, frozenset[str]]] = {}
    for volume in nested_list(pod, "spec", "volumes"):
        secret_source = nested_map(volume, "secret")
        sources = [(secret_source.get("secretName"), secret_source)]
        for projection in nested_list(volume, "projected", "sources"):
            source = nested_map(projection, "secret")
            sources.append((source.get("name"), source))
        secrets: dict[str, frozenset[str]] = {}
        for name, source in sources:
            if name and not source.get("optional"):
                keys = frozenset(item["key"] for item in nested_list(source, "items"))
                secrets[name] = secrets.get(name, frozenset()) | keys
        if secrets:
            by_volume[volume["name"]] = secrets
    return by_volume


def _waits_since(pod: Object, now: datetime) -> datetime | None:
    """The time since which a scheduled pod waits for its volumes; None if it does not.

    A pod whose sandbox is created has its volumes (condition PodReadyToStartContainers), also while it pulls an image.
    """
    scheduled, started = condition_of(pod, "PodScheduled"), condition_of(pod, "PodReadyToStartContainers")
    if scheduled.get("status") != "True" or started.get("status") == "True":
        return None
    if not all(map(_is_creating, _containers(pod))):
        return None
    # After a restart of its node, a pod has waited since it lost its sandbox.
    times = (past_time(condition.get("lastTransitionTime"), now) for condition in (scheduled, started) if condition)
    return max((since for since in times if since is not None), default=now)


def _mounted_since(pod: Object) -> datetime | None:
    """The time since which a pod has its volumes; None if that is unknown."""
    started = condition_of(pod, "PodReadyToStartContainers")
    if started.get("status") == "True" and (since := time_of(started.get("lastTransitionTime"))) is not None:
        return since
    running = (nested_map(status, "state", "running").get("startedAt") for status in _containers(pod))
    return min((start for text in running if (start := time_of(text)) is not None), default=None)


def _containers(pod: Object) -> list[Mapping[str, Any]]:
    fields = ("initContainerStatuses", "containerStatuses")
    return [status for name in fields for status in nested_list(pod, "status", name)]


def _is_creating(status: Mapping[str, Any]) -> bool:
    """True for a container that waits for its pod. Without a state, the kubelet has not reported it yet."""
    state = nested_map(status, "state")
    return not state or nested_map(state, "waiting").get("reason") in CREATING_REASONS


def _uid(pod: Object) -> str:
    return pod["metadata"]["uid"]
