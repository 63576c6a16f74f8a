"""Pods that serve before they are ready, because their caches are cold."""

import re
from collections.abc import Mapping
from typing import Any, Final

from memcached_api.annotations import WARM_UP_ANNOTATION
from memcached_operator.kube.resource import nested_map

_TIMEOUT: Final = re.compile(r"(?:^|,)timeout=([0-9]{1,6})(?:,|$)")


def timeout_of(template: Mapping[str, Any]) -> int | None:
    """Seconds after which a pod with this template counts as warm in any case; None if it is ready without that."""
    match = _TIMEOUT.search(nested_map(template, "metadata", "annotations").get(WARM_UP_ANNOTATION, ""))
    return int(match[1]) if match else None
