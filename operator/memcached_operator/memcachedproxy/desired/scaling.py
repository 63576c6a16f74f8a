"""What pods of proxies have only in a phase of a change of size: the handler of the routes, and the sweep.

No other pod template has them, so that nothing changes without `spec.scaling.warm` of the Memcached.
"""

from typing import Final

from memcached_api.annotations import HANDLER_ANNOTATION, ROUTES_ANNOTATION
from memcached_api.memcachedproxy.resolved import Settings
from memcached_api.memcachedproxy.types import MemcachedProxySpec
from memcached_api.shared.agent import AGENT_LIMIT, AGENT_REQUEST
from memcached_api.shared.resources import complete, limits_and_requests
from memcached_operator.kube.resource import Object
from memcached_operator.memcachedproxy.desired.handler import handler
from memcached_operator.memcachedproxy.desired.routes import phase_routes
from memcached_operator.memcachedproxy.references import Slots
from memcached_operator.parts.pods import RESTRICTED
from memcached_operator.parts.ring import Move, Phase, Ring

SWEEP: Final = "sweep"
"""The name of the init container."""

CPU: Final = "100m"
"""The CPU request of the sweep, as of the proxy, which starts after it: a key takes about 4 µs."""

HANDLER_FILE: Final = "handler"


def annotations(slots: Slots, move: Move, settings: Settings, buffers: int) -> dict[str, str]:
    """The routes of a phase and their handler. `buffers`: KiB of values in flight."""
    text = phase_routes(slots, move.source, move.target, move.phase, settings, buffers)
    return {ROUTES_ANNOTATION: text, HANDLER_ANNOTATION: handler()}


def is_swept(ring: Ring) -> bool:
    """Whether outdated items are removed from the slots before a pod with this ring serves."""
    return ring.move is not None and ring.move.phase is Phase.PREPARE


def sweep(spec: MemcachedProxySpec, image: str, slots: Slots, ring: Ring) -> list[Object]:
    """The init container that removes them: its end proves that no slot has an outdated copy. Empty in other phases.

    In Move, it would remove items that have just moved.
    """
    if ring.move is None or not is_swept(ring):
        return []
    given = limits_and_requests(spec.agent and spec.agent.resources)
    container: Object = {
        "name": SWEEP,
        "image": image,
        "command": [
            *("memcached-agent", "sweep"),
            f"--old={ring.move.source}",
            f"--new={ring.move.target}",
            f"--change={ring.move.change}",
            f"--host={slots.name}-{{}}.{slots.domain}",
            f"--port={slots.port}",
        ],
        "resources": complete(*given, CPU, AGENT_REQUEST, AGENT_LIMIT),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": RESTRICTED,
    }
    return [container]
