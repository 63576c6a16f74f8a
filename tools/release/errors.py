"""The one exception of this package."""

from cluster.errors import ClusterError


class ReleaseError(ClusterError):
    """A release cannot be made: the message is one sentence with the remedy."""
