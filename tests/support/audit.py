"""Reads requests from the API server's audit log."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.waiting import QUIET, READY

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


class Audit:
    """The audit log from now on or, with `whole`, from the start of the cluster."""

    def __init__(self, path: Path, *, whole: bool = False) -> None:
        self.path = path
        self.started = time.monotonic()
        self._offset = 0 if whole else path.stat().st_size

    def requests(self, containing: bytes = b"") -> Iterator[dict[str, Any]]:
        """Every completed request whose log entry contains `containing`."""
        with self.path.open("rb") as log:
            if self._offset:  # possibly within a line: the API server was writing it
                log.seek(self._offset - 1)
                log.readline()
            for line in log:
                if containing in line and line.endswith(b"\n"):
                    yield json.loads(line)

    def writes(self, namespace: str | None = None, *, agent: str = "memcached-operator") -> "Counter[str]":
        """Number of writes by the operator per `verb resource[/subresource]`, without Leases and Events."""
        found: Counter[str] = Counter()
        for request in self.requests():
            target = request.get("objectRef", {})
            if request["verb"] not in WRITES or not request.get("userAgent", "").startswith(agent):
                continue
            if target.get("resource") in ("leases", "events"):
                continue
            if namespace is not None and target.get("namespace") != namespace:
                continue
            sub = f"/{target['subresource']}" if target.get("subresource") else ""
            found[f"{request['verb']} {target.get('resource')}{sub}"] += 1
        return found

    def wait_until_quiet(self, seconds: float = QUIET, namespace: str | None = None) -> None:
        """Wait until the operator has written nothing for `seconds`."""
        deadline = time.monotonic() + READY
        last, since = self.writes(namespace), time.monotonic()
        while time.monotonic() - since < seconds:
            assert time.monotonic() < deadline, f"the operator keeps writing: {self.writes(namespace)}"
            time.sleep(0.5)
            now = self.writes(namespace)
            if now != last:
                last, since = now, time.monotonic()
