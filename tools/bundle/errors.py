"""The error type whose message is shown to the user."""


class BundleError(Exception):
    """Invalid input: the message is one sentence with object, field, value and remedy."""
