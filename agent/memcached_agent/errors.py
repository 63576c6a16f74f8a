"""Reasons why the content of a file is not in use."""


class InvalidError(Exception):
    """A file cannot be used, or memcached does not use it. The message is a sentence for the log and for /healthz.

    It names the file, the reason and the remedy, and contains nothing of the content.
    """


class UnverifiedError(Exception):
    """memcached was asked to reload a valid file, and it is not known yet whether it uses the new content."""
