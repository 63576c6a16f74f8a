"""The slots that pods of a MemcachedProxy use, as memcached reads them from the annotation with the routes."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from memcached_api.annotations import ROUTES_ANNOTATION
from memcached_operator.kube.resource import nested_map

_LABEL: Final = re.compile(r'label = "(.+?)-" \.\. i')
_LAST: Final = re.compile(r"for i = 0, (\d+) do")


class Routes(NamedTuple):
    """What a pod or a pod template uses: the first `slots` slots of a Memcached."""

    cache: str
    slots: int


def routes_of(obj: Mapping[str, Any]) -> Routes | None:
    """The routes of a pod or a pod template; None without them."""
    text = nested_map(obj, "metadata", "annotations").get(ROUTES_ANNOTATION, "")
    label, last = _LABEL.search(text), _LAST.search(text)
    return Routes(label[1], int(last[1]) + 1) if label and last else None


def template_routes(live: Mapping[str, Any]) -> Routes | None:
    """The routes of a Deployment's pod template."""
    return routes_of(nested_map(live, "spec", "template"))
