import json
import logging
import sys
from typing import Any

import pytest

from memcached_process.logs import JsonFormatter, RateLimiter, configure


@pytest.fixture(autouse=True)
def root_logger() -> Any:
    """Restore the root logger."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = before


def logged(message: str, *args: object, **fields: Any) -> dict[str, Any]:
    """One formatted and parsed record."""
    record = logging.LogRecord("operator", logging.WARNING, "", 1, message, args, **{"exc_info": None, **fields})
    record.created = 0.0123
    line = JsonFormatter().format(record)
    assert "\n" not in line
    return json.loads(line)


def test_json_has_the_keys_of_zap() -> None:
    assert logged("%s of %d “pods”\n", "two", 3) == {
        "level": "warning",
        "ts": "1970-01-01T00:00:00.012+00:00",
        "logger": "operator",
        "msg": "two of 3 “pods”\n",
    }


def test_exception_is_part_of_its_line() -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        found = logged("failed", exc_info=sys.exc_info())
    assert found["stacktrace"].endswith("ValueError: broken")


@pytest.mark.parametrize(("level", "printed"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_records_below_the_level_are_not_printed(level: str, printed: int, capsys: pytest.CaptureFixture[str]) -> None:
    configure(level, "text")
    for number in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        logging.getLogger("x").log(number, "line")
    assert len(capsys.readouterr().err.splitlines()) == printed


def test_json_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", "json")
    logging.getLogger("x").info("hello")
    out = capsys.readouterr()
    assert (out.out, json.loads(out.err)["msg"]) == ("", "hello")


def test_rate_limit_applies_per_second() -> None:
    limit = RateLimiter(2)
    taken = [limit.allow(now) for now in (7.0, 7.1, 7.2, 7.999, 8.0, 8.5, 8.9, 100.0)]
    assert taken == [True, True, False, False, True, True, False, True]
