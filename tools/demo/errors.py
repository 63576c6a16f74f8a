"""The one error that a user is meant to read."""


class StoryError(Exception):
    """Something is not as told: the message is one sentence saying what, and where it helps, what to do."""
