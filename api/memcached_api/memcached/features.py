"""The features of a Memcached that a field switches on, from which the table in docs/api.md is generated."""

from collections.abc import Mapping
from typing import Final

FEATURES: Final[Mapping[str, str]] = {
    "podDisruptionBudget": "A PodDisruptionBudget, which the webhook sets in new objects and if you remove it",
    "monitoring": "Metrics",
    "monitoring.podMonitor": "A PodMonitor",
    "monitoring.rules": "Alerts",
    "monitoring.tls": "Metrics over HTTPS",
    "monitoring.insight": "Predicted hit ratios",
    "networkPolicy": "A NetworkPolicy",
    "tls": "TLS for clients",
    "auth": "User names and passwords",
    "rollout.warmUp": "Rollouts and drains that wait for warm pods",
    "cache.warmRestart": "Items that survive a restart of memcached",
    "cache.extstore": "Items on disks",
    "scaling.warm": "Changes of size that move keys in phases",
    "service.perPod": "A Service for each slot",
    "rollout.paused": "Pausing rollouts",
    "identity": "Slots with stable names",
    "tls.clientAuth": "Client certificates",
    "tls.plaintext": "A port without TLS in addition to the TLS port",
}
"""Each feature by the path of its field in `spec`. The type of the field determines how it is switched on: see
`Kind.features`."""
