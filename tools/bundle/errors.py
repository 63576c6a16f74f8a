"""The error type whose message is shown to the user."""

from cluster.errors import ClusterError


class BundleError(ClusterError):
    """Invalid input: the message is one sentence with object, field, value and remedy."""
