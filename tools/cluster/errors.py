"""The one error that a user is meant to read."""


class ClusterError(Exception):
    """An expected failure: the message is one sentence saying what is wrong and how to put it right."""
