"""The command `memcached-agent sweep`."""

import argparse
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final, Never

from memcached_agent.parser import MAX_QUOTED, Parser
from memcached_agent.sweep.connection import Deadline
from memcached_agent.sweep.slot import Change, Slot
from memcached_agent.sweep.sweep import failure, success, sweep

DESCRIPTION: Final = """Prepare slots for a change of their number behind memcached's proxy. Afterwards, no slot of the
new ring has an item whose home in the old ring is another slot. Proxies never ask for such items in the old ring, but
they could after the change. Exits with code 0 when all slots are swept. The item
memcached-operator.example.com/swept of each slot then has the number of the change, and another sweep of
the same change leaves the slot as it is. Exits with code 1 if a slot cannot be swept in time: the last line of the log
says why. memcached must be 1.6.40 or later."""
TIMEOUT: Final = 240
"""Seconds, by default. The kubelet then starts the container again."""
MAX_SLOTS: Final = 1000
"""Slots of a Memcached."""
MAX_NUMBER: Final = 2**63 - 1
MAX_TIMEOUT: Final = 86400
TERMINATED: Final = 128 + signal.SIGTERM

_is_host: Final = re.compile(r"(?=.{3,253}$)[A-Za-z0-9.:-]*\{\}[A-Za-z0-9.:-]*", re.ASCII).fullmatch


def main(arguments: Sequence[str]) -> int:
    """Run the command; returns its exit code. Exits with code 2 if the command line is invalid."""
    options = _options(arguments)
    # The first process of a container ignores signals without a handler.
    signal.signal(signal.SIGTERM, _terminate)
    began = time.monotonic()
    slots = [Slot(number, options.host.replace("{}", str(number)), options.port) for number in range(options.new)]
    change = Change(options.old, options.new, options.change)
    done = sweep(slots, change, Deadline(options.timeout), _log)
    _log(success(slots, time.monotonic() - began) if done else failure(slots, options.timeout))
    return 0 if done else 1


def _terminate(_number: int, _frame: FrameType | None) -> Never:
    sys.exit(TERMINATED)


def _log(line: str) -> None:
    """Write a line without a time: the last ones become the termination message of the container."""
    sys.stderr.write(f"{line}\n")


def _options(arguments: Sequence[str]) -> Any:
    parser = Parser(prog="memcached-agent sweep", description=DESCRIPTION, allow_abbrev=False)
    slots = _number(1, MAX_SLOTS)
    parser.add_argument("--old", metavar="SLOTS", type=slots, required=True, help="slots of the ring in use; required")
    parser.add_argument("--new", metavar="SLOTS", type=slots, required=True, help="slots of the next ring; required")
    parser.add_argument(
        "--change",
        metavar="NUMBER",
        type=_number(1, MAX_NUMBER),
        required=True,
        help="number of the change, which no other change of these slots has; required",
    )
    parser.add_argument(
        "--host",
        metavar="NAME",
        type=_host,
        required=True,
        help="name or IP address of each slot, in which {} stands for its number; required",
    )
    parser.add_argument(
        "--port", type=_number(1, 65535), default=11211, help="port of memcached in each slot (default: %(default)s)"
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_number(1, MAX_TIMEOUT),
        default=TIMEOUT,
        help="time after which the sweep fails (default: %(default)s)",
    )
    values = parser.parse_args(arguments)
    if values.old == values.new:
        parser.error("--old and --new must differ")
    return values


def _number(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"{text[:MAX_QUOTED]!r}: use a number from {least} to {most}")
        return int(text)

    return parse


def _host(text: str) -> str:
    if not _is_host(text):
        raise argparse.ArgumentTypeError(
            f"{text[:MAX_QUOTED]!r}: use a name of at most 253 characters with {{}} once, for the number of the slot"
        )
    return text
