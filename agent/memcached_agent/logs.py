"""Logging to standard error, as text or as JSON."""

import logging
from typing import Final

LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")


def configure(level: str, log_format: str) -> None:
    """Set up the root logger; `level` is one of LEVELS, `log_format` one of FORMATS."""
    handler = logging.StreamHandler()
    if log_format == "json":
        from memcached_agent.json_logs import JsonFormatter  # imports modules that text does not need

        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
