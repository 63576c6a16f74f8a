"""The pause of a rollout, as Memcached and MemcachedProxy have it in their spec."""

from typing import Final

from memcached_api.values import nested_field
from memcached_operator.kube.resource import Object

RESUME: Final = "set spec.rollout.paused to false"
"""The remedy for a pause."""

ENDED: Final = "see the Degraded condition"
"""The remedy if the spec has no pause any more, but the Deployment has: the spec is invalid, or names a Memcached that
cannot be used."""


def remedy(cr: Object) -> str:
    """The remedy for a workload that is paused."""
    return RESUME if nested_field(cr, "spec", "rollout", "paused") is True else ENDED
