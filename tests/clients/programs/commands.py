"""The commands of the client programs in Python, from standard input: one result line for each.

`set N` and `get N` send a request for each key. `set-many N`, `get-many N` and `delete-many N` call the library once.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class Many(NamedTuple):
    """Calls with several keys. `store` and `delete` return how many keys succeeded according to the library."""

    store: Callable[[Mapping[str, str]], int]
    read: Callable[[Sequence[str]], Mapping[str, str]]
    delete: Callable[[Sequence[str]], int]


def serve(prefix: str, store: Callable[[str], object], read: Callable[[str], object], many: Many | None = None) -> None:
    """Answer commands until the input ends. `store` returns whether a key was stored; `read` returns its value."""
    for line in sys.stdin:
        command, count = line.split()
        keys = [f"{prefix}-{number}" for number in range(int(count))]
        match command:
            case "set":
                _report("stored", [lambda key=key: bool(store(key)) for key in keys])
            case "get":
                _report("hits", [lambda key=key: read(key) == key for key in keys])
            case "set-many" if many:
                _report("stored", [lambda keys=keys, many=many: many.store({key: key for key in keys})])
            case "get-many" if many:
                _report(
                    "hits", [lambda keys=keys, many=many: sum(key == value for key, value in many.read(keys).items())]
                )
            case "delete-many" if many:
                _report("deleted", [lambda keys=keys, many=many: many.delete(keys)])
            case _:
                raise ValueError(line)


def _report(name: str, calls: Sequence[Callable[[], int]]) -> None:
    """Make the calls; print how many keys succeeded, how many calls failed, and the seconds of the slowest call."""
    succeeded, failed, slowest = 0, 0, 0.0
    for call in calls:
        started = time.monotonic()
        try:
            succeeded += call()
        except Exception:  # noqa: BLE001 - each library has its own exceptions
            failed += 1
        slowest = max(slowest, time.monotonic() - started)
    sys.stdout.write(f"{name} {succeeded} errors {failed} slowest {slowest:.3f}\n")
    sys.stdout.flush()
