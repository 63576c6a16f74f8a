"""Reviews of objects without a server."""

from collections.abc import Iterable
from copy import deepcopy
from typing import Any


def patched(obj: Any, patch: Iterable[Any]) -> Any:
    """A copy of an object with the defaults of a JSON patch."""
    found = deepcopy(obj)
    for step in patch:
        *parents, last = step["path"].split("/")[1:]
        parent = found
        for name in parents:
            parent = parent[name]
        parent[last] = deepcopy(step["value"])  # a later step may change it
    return found
