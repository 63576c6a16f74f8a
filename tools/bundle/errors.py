"""The one error that a user is meant to read."""


class BundleError(Exception):
    """What is given cannot be packed: the message is one sentence with object, field, value and remedy."""
