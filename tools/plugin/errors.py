"""The one exception of this package."""


class PackingError(Exception):
    """The plugin cannot be packed: the message is one sentence with the remedy."""
