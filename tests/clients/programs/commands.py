"""The commands of the client programs in Python: `set N` and `get N` from standard input, one result line for each."""

import sys
import time
from collections.abc import Callable, Iterable


def serve(prefix: str, store: Callable[[str], object], read: Callable[[str], object]) -> None:
    """Answer commands until the input ends. `store` returns whether a key was stored; `read` returns its value."""
    for line in sys.stdin:
        command, count = line.split()
        keys = [f"{prefix}-{number}" for number in range(int(count))]
        if command == "set":
            _report("stored", keys, lambda key: bool(store(key)))
        else:
            _report("hits", keys, lambda key: read(key) == key)


def _report(name: str, keys: Iterable[str], request: Callable[[str], bool]) -> None:
    """Send the requests; print how many succeeded and failed, and the seconds of the slowest one."""
    succeeded, failed, slowest = 0, 0, 0.0
    for key in keys:
        started = time.monotonic()
        try:
            succeeded += request(key)
        except Exception:  # noqa: BLE001 - each library has its own exceptions
            failed += 1
        slowest = max(slowest, time.monotonic() - started)
    sys.stdout.write(f"{name} {succeeded} errors {failed} slowest {slowest:.3f}\n")
    sys.stdout.flush()
