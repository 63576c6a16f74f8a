"""Logging to standard error, as text or as JSON."""

import json
import logging
from datetime import UTC, datetime
from typing import Final

LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")


MAX_MESSAGE: Final = 8192
"""Maximum characters of a message. Those of this operator are shorter; libraries log what they receive."""


def printable(text: str) -> str:
    """The text with `\\n` for a newline, and all other control characters likewise."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(char: str) -> str:
    return char if char.isprintable() else json.dumps(char)[1:-1]


class TextFormatter(logging.Formatter):
    """One line per record, and the traceback of an error. A text of another program cannot begin another line."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name in the base class
        record.message = printable(record.message[:MAX_MESSAGE])
        return super().formatMessage(record)


class JsonFormatter(logging.Formatter):
    """One JSON object per line, with the keys of zap, the logger of Go operators."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "level": record.levelname.lower(),
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "logger": record.name,
            "msg": record.getMessage()[:MAX_MESSAGE],
        }
        if record.exc_info:
            entry["stacktrace"] = self.formatException(record.exc_info)
        return printable(json.dumps(entry, ensure_ascii=False))


def configure(level: str, log_format: str) -> None:
    """Set up the root logger; `level` is one of LEVELS, `log_format` one of FORMATS."""
    handler = logging.StreamHandler()
    text = TextFormatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    handler.setFormatter(JsonFormatter() if log_format == "json" else text)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


class RateLimiter:
    """Limits the log lines that clients can cause to `count` per second."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._second = -1
        self._taken = 0

    def allow(self, now: float) -> bool:
        """Whether one more is allowed at `now`, in seconds of a monotonic clock."""
        if int(now) != self._second:
            self._second, self._taken = int(now), 0
        self._taken += 1
        return self._taken <= self._count
