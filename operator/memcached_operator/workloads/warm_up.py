"""Pods that serve before they are ready, because their caches are cold."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from memcached_operator.kube.resource import Object, nested_map
from memcached_operator.workloads.pods import condition_of, container_status, is_active

WARM_UP_ANNOTATION: Final = "memcached-operator.example.com/warm-up"
"""Annotation of a pod that is ready only when it is warm. Its value, such as `hitRatio=80,timeout=900,minRequests=100`,
is read by the agent in the pod. Times are in seconds."""

_TIMEOUT: Final = re.compile(r"(?:^|,)timeout=([0-9]{1,6})(?:,|$)")


def timeout_of(template: Mapping[str, Any]) -> int | None:
    """Seconds after which a pod with this template counts as warm in any case; None if it is ready without that."""
    match = _TIMEOUT.search(nested_map(template, "metadata", "annotations").get(WARM_UP_ANNOTATION, ""))
    return int(match[1]) if match else None


def warming(pods: Iterable[Object], container: str) -> list[str]:
    """The names of the pods whose container is ready, while the pod is not, sorted."""
    return sorted(pod["metadata"]["name"] for pod in pods if serves(pod, container) and not _is_ready(pod))


def serves(pod: Object, container: str) -> bool:
    """Whether a container of a pod is ready, also if the pod is not."""
    return is_active(pod) and container_status(pod, container).get("ready") is True


def _is_ready(pod: Object) -> bool:
    return condition_of(pod, "Ready").get("status") == "True"
