"""A client that sends requests to a real memcached the whole time."""

import random
import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from corners.client import Client

KEYS: Final = 6000
SIZE: Final = 4000
"""Bytes of a value. About a quarter of the items fit into 8 MiB."""
SECONDS: Final = 120.0
"""Enough for some replies on a busy machine."""


class Traffic:
    """Looks up keys in random order, and stores those that are missing. Each value is that of its key, and new.

    `replies`: how many arrived, each of them correct.
    """

    def __init__(self, client: Client) -> None:
        self.replies = 0
        self.gets = self.sets = 0
        self._client = client
        self._stored: dict[int, bytes] = {}
        self._stopped = threading.Event()
        self._keys: Final = random.Random(7)  # noqa: S311 - not a secret

    def run(self) -> None:
        """Send one request after the other, until stopped. Raises AssertionError for a wrong reply."""
        try:
            while not self._stopped.is_set():
                self._look_up(self._keys.randrange(KEYS))
        finally:
            self._stopped.set()

    def stop(self) -> None:
        """Stop after the next reply."""
        self._stopped.set()

    def until_served(self) -> None:
        """Wait until 100 more replies have arrived."""
        last, deadline = self.replies + 100, time.monotonic() + SECONDS
        while self.replies < last:
            assert not self._stopped.is_set(), "a request failed"
            assert time.monotonic() < deadline, f"{last - self.replies} of 100 replies are missing"
            time.sleep(0.01)

    def _look_up(self, key: int) -> None:
        self.gets += 1
        reply = self._client.request(b"get traffic-%d\r\n" % key, b"END\r\n")
        found = b"VALUE traffic-%d 0 %d\r\n%b\r\nEND\r\n" % (key, SIZE, self._stored.get(key, b""))
        assert reply in (b"END\r\n", found), f"wrong reply for key {key}: {reply[:100]!r}"
        self.replies += 1
        if reply != found:
            self._store(key)

    def _store(self, key: int) -> None:
        self.sets += 1
        value = (b"%d in request %d, " % (key, self.sets)).ljust(SIZE, b"x")
        reply = self._client.request(b"set traffic-%d 0 0 %d\r\n%b\r\n" % (key, SIZE, value))
        assert reply == b"STORED\r\n", f"key {key} was not stored: {reply!r}"
        self._stored[key] = value
        self.replies += 1


@contextmanager
def traffic(client: Client) -> Generator[Traffic]:
    """Send requests over this connection during the block, and close it.

    Asserts at the end that memcached still replies, that each reply was correct, and that memcached has executed each
    request once. So the block must not get or set other items.
    """
    before, found = client.stats(), Traffic(client)
    with client.socket, ThreadPoolExecutor(1) as executor:
        running = executor.submit(found.run)
        try:
            found.until_served()
            yield found
            found.until_served()
        finally:
            found.stop()
            running.result()
        after = client.stats()
        executed = [int(after[name]) - int(before[name]) for name in ("cmd_get", "cmd_set")]
        assert executed == [found.gets, found.sets]
