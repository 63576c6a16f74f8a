"""Finds why images were not pulled, in the Events of the kubelet.

Before Kubernetes 1.32, the status of a pod does not say it between two attempts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from memcached_api.image import MAX_LENGTH
from memcached_operator.kube.resource import Object, nested_list, nested_map
from memcached_operator.workloads.pods import is_active
from memcached_operator.workloads.times import last_seen

FIELDS: Final = "involvedObject.uid={},reason=Failed,source=kubelet"
"""The field selector of the kubelet's Events about the containers of a pod with this uid (its pkg/kubelet/events).

Anyone who can create Events in the namespace can write such ones too. They affect only the status of the object that
owns the pod, in which their text is quoted.
"""

MAX_PODS: Final = 3
"""Maximum pods of one object whose images are explained. Pods with the same template usually lack the same one."""

MAX_TEXT: Final = 4096
"""Characters of a message that are kept."""

_BACK_OFF: Final = re.compile(r'Back-off pulling image "[^"]*"')
"""The kubelet's whole text during its back-off, without the error (its image_manager.go, before release 1.32)."""

_FAILED: Final = re.compile(rf'Failed to pull image "([^"]{{1,{MAX_LENGTH}}})": ', re.DOTALL)
"""The start of its Event about an attempt. The error follows."""

Errors = Mapping[tuple[str, str], str]
"""The last error by the uid of the pod and the image."""


def is_unexplained(waiting: Mapping[str, Any]) -> bool:
    """Whether the state of a container that waits for its image does not say why."""
    return _BACK_OFF.fullmatch((waiting.get("message") or "")[:MAX_TEXT]) is not None


def unexplained(pods: Iterable[Object]) -> tuple[str, ...]:
    """The uids of pods whose Events are needed."""
    return tuple(sorted(pod["metadata"]["uid"] for pod in pods if is_active(pod) and _lacks_error(pod)))[:MAX_PODS]


def relevant(events: Iterable[Object]) -> Iterator[Object]:
    """The newest Event about each image, without what changes when it is repeated."""
    newest: dict[tuple[str, str], tuple[datetime, str]] = {}
    for event in events:
        text, seen = (event.get("message") or "")[:MAX_TEXT], last_seen(event)
        if seen is not None and (found := _FAILED.match(text)):
            of = nested_map(event, "involvedObject").get("uid") or "", found[1]
            newest[of] = max((seen, text), newest.get(of, (seen, text)))
    for (uid, _), (_, text) in sorted(newest.items()):
        yield {"involvedObject": {"uid": uid}, "message": text}


def errors(events: Iterable[Object]) -> Errors:
    """The errors in such Events. Others, about the same pods, are ignored."""
    texts = ((nested_map(event, "involvedObject").get("uid") or "", event.get("message") or "") for event in events)
    found = ((uid, text, _FAILED.match(text)) for uid, text in texts)
    return {(uid, start[1]): text[start.end() :] for uid, text, start in found if start}


def _lacks_error(pod: Object) -> bool:
    statuses = (
        each for part in ("initContainerStatuses", "containerStatuses") for each in nested_list(pod, "status", part)
    )
    return any(is_unexplained(nested_map(each, "state", "waiting")) for each in statuses)
