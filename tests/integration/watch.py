"""Feeds the lines of a memcached to a window, as the agent does."""

import socket
import threading
import time
from typing import Final

from corners.client import Client
from memcached_agent.insight.counters import chunks, counters
from memcached_agent.insight.window import Result, Window
from memcached_agent.memcached.stats import Statistics, statistics

COMMANDS: Final = ("stats", "stats settings", "stats items", "stats slabs")
WATCH: Final = b"watch evictions mutations\r\n"
OK: Final = b"OK\r\n"
LAST_LINES: Final = 1.5
"""Seconds until memcached has sent the lines of the last requests: its logger sleeps at most 1 s."""


class Watch:
    """A window over the memcached at this port. It starts when it is created."""

    def __init__(self, port: int) -> None:
        self._client = Client(port)
        found = self._statistics()
        self.window: Final = Window(counters(found), chunks(found))
        self._began = time.monotonic()
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.sendall(WATCH)
        if self._socket.recv(len(OK)) != OK:
            raise OSError("memcached does not accept a watcher")
        self._error: Exception | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def result(self) -> Result:
        """Stop the window, and return what it shows. Raises ValueError if memcached sent an invalid line."""
        end, seconds = counters(self._statistics()), time.monotonic() - self._began
        time.sleep(LAST_LINES)
        self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._socket.close()
        if self._error:
            raise self._error
        end = end._replace(lost=counters(self._statistics()).lost)
        self._client.close()
        return self.window.result(end, seconds)

    def _statistics(self) -> Statistics:
        return statistics(*(self._client.request(f"{each}\r\n".encode(), b"END\r\n") for each in COMMANDS))

    def _read(self) -> None:
        rest = b""
        while received := self._socket.recv(2**20):
            *lines, rest = (rest + received).split(b"\n")
            try:
                self.window.feed(lines)
            except ValueError as error:
                self._error = error
                return
