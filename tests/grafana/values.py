"""Grafana's variables in expressions, and what a dashboard shows for their values."""

import re
from collections.abc import Mapping

ALL = ".*"
RATE = "15s"
"""What Grafana chooses for `$__rate_interval` is four times the time between two scrapes, at least."""


def filled(text: str, values: Mapping[str, str], rate: str = RATE) -> str:
    """A text with the values of its variables. Raises KeyError for an unknown one.

    `$1` and `$2` are groups of PromQL.
    """
    known = {**values, "__rate_interval": rate, "1": "$1", "2": "$2"}
    return re.sub(r"\$(\w+)", lambda found: known[found[1]], text)
