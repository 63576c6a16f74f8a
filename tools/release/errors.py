"""The one exception of this package."""


class ReleaseError(Exception):
    """A release cannot be made: the message is one sentence with the remedy."""
