"""The one error that a user is meant to read."""


class DemoError(Exception):
    """A step failed: the message is one sentence that says how, and where it helps, the remedy."""
