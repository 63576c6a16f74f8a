"""The Events of the operator about pods that Kubernetes stopped, such as evicted ones."""

from collections.abc import Sequence
from typing import Final

from kubectl_memcached.model import units
from kubectl_memcached.model.objects import Object, text
from kubectl_memcached.model.pods import bounded

REASON: Final = "PodDisrupted"
"""The reason of these Events."""


def selector(cr: Object) -> str:
    """The field selector of the Events about a Memcached."""
    return f"involvedObject.uid={text(cr, 'metadata', 'uid')},reason={REASON}"


def sentence(events: Sequence[Object], now: float) -> str:
    """The number of the Events, and the last one. Empty without any. `now`: seconds since 1970."""
    times = {index: units.seconds(text(event, "lastTimestamp")) or 0.0 for index, event in enumerate(events)}
    if not times:
        return ""
    last = max(times, key=times.__getitem__)
    number = "1 Event reports" if len(events) == 1 else f"{len(events)} Events report"
    age = units.duration(max(0.0, now - times[last]))
    return f"{number} pods that Kubernetes stopped. The last one, {age} ago: {bounded(text(events[last], 'message'))}"
