"""The error type whose message is shown to the user."""


class ClusterError(Exception):
    """An expected failure: the message is one sentence with the problem and its remedy."""
