"""Finds why images were not pulled, in the Events of the kubelet.

Before Kubernetes 1.32, the status of a pod does not say it between two attempts.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from memcached_api.image import MAX_LENGTH
from memcached_operator.findings.rules import specs_of
from memcached_operator.kube.resource import Object, nested_list, nested_map
from memcached_operator.kube.times import last_seen
from memcached_operator.world.pods import is_active

FIELDS: Final = "involvedObject.uid={},reason=Failed,source=kubelet"
"""The field selector of the kubelet's Events about the containers of a pod with this uid (its pkg/kubelet/events).

Anyone who can create Events in the namespace can write such ones too. They affect only the status of the object that
owns the pod, in which their text is quoted as that of the kubelet itself.
"""

MAX_PODS: Final = 3
"""Maximum pods of one object whose images are explained. Pods with the same template usually lack the same one."""

READ_PERIOD: Final = 60.0
"""Minimum seconds between two reads of the Events of one object, for the same pods."""

SKEW: Final = timedelta(minutes=2)
"""The most by which the clock of a node is ahead. An Event of a later time is forged, and would never be replaced."""

MAX_TEXT: Final = 2048
"""Characters of a message that are kept."""

_BACK_OFF: Final = re.compile(r'Back-off pulling image "[^"]*"')
"""The kubelet's whole text during its back-off, without the error (its image_manager.go, before release 1.32)."""

_FAILED: Final = re.compile(rf'Failed to pull image "([^"]{{1,{MAX_LENGTH}}})": ')
"""The start of its Event about an attempt. The error follows."""

Errors = Mapping[tuple[str, str], str]
"""The last error by the uid of the pod and the image."""


def is_unexplained(waiting: Mapping[str, Any]) -> bool:
    """Whether the state of a container that waits for its image does not say why."""
    return _BACK_OFF.fullmatch((waiting.get("message") or "")[:MAX_TEXT]) is not None


@dataclass(frozen=True)
class Demand:
    """The uids of pods whose Events are needed, at once."""

    uids: frozenset[str]
    images: frozenset[str]
    """The images for which their containers wait."""
    after: float = 0.0
    period: float = READ_PERIOD
    urgent: bool = True

    def is_part_of(self, other: "Demand") -> bool:
        """Whether the other one has the same pods and images, and perhaps more."""
        return self.uids <= other.uids and self.images <= other.images


def demand(pods: Iterable[Object]) -> Demand | None:
    """What is needed to explain images; None if nothing is. A status shows the first pods by name."""
    lacking = {pod["metadata"]["name"]: pod for pod in pods if is_active(pod) and any(_unexplained(pod))}
    shown = [lacking[name] for name in sorted(lacking)[:MAX_PODS]]
    if not shown:
        return None
    images = frozenset(image for pod in shown for image in _unexplained(pod))
    return Demand(frozenset(pod["metadata"]["uid"] for pod in shown), images)


def relevant(events: Iterable[Object], images: Collection[str], now: datetime) -> Iterator[Object]:
    """The newest Event about each of these images, without what changes when it is repeated. None from the future."""
    newest: dict[tuple[str, str], tuple[datetime, str]] = {}
    for event in events:
        text, seen = (event.get("message") or "")[:MAX_TEXT], last_seen(event)
        found = _FAILED.match(text)
        if seen is not None and seen <= now + SKEW and found and found[1] in images:
            of = nested_map(event, "involvedObject").get("uid") or "", found[1]
            newest[of] = max((seen, text), newest.get(of, (seen, text)))
    for (uid, _), (_, text) in sorted(newest.items()):
        yield {"involvedObject": {"uid": uid}, "message": text}


def errors(events: Iterable[Object]) -> Errors:
    """The errors in such Events. Others, about the same pods, are ignored."""
    texts = ((nested_map(event, "involvedObject").get("uid") or "", event.get("message") or "") for event in events)
    found = ((uid, text, _FAILED.match(text)) for uid, text in texts)
    return {(uid, start[1]): text[start.end() :] for uid, text, start in found if start}


def _unexplained(pod: Object) -> Iterator[str]:
    """The images of the containers whose state does not say why they wait."""
    for part, statuses in (("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")):
        for each in nested_list(pod, "status", statuses):
            if is_unexplained(nested_map(each, "state", "waiting")):
                images = (spec.get("image", "") for spec in specs_of(pod, part, each["name"]))
                yield next(images, "") or each.get("image", "")
