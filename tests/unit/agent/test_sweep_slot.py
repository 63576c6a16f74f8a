"""The sweep of slots with scripted servers, and its command line."""

import re
import socket
from collections.abc import Mapping
from typing import Final

import pytest

from memcached_agent.sweep.connection import Deadline, SlotError, TimeIsUpError
from memcached_agent.sweep.dump import MARKER
from memcached_agent.sweep.slot import Change, Slot
from memcached_agent.sweep.sweep import sweep
from support import waiting
from support.ports import free_port
from support.stub_memcached import Stub, memcached

from .processes import finished

CHANGE: Final = Change(1, 2, 7)
DUMP: Final = "lru_crawler mgdump hash"
MARK: Final = f"ms {MARKER.decode()} 1"
READ: Final = f"mg {MARKER.decode()} v"
STATS: Final = "STAT version 1.6.45\r\nSTAT lru_crawler_running 0\r\nEND\r\n"
RUNNING: Final = STATS.replace("running 0", "running 1")
EMPTY: Final = {READ: "EN\r\n", "mn": "MN\r\n", "stats": STATS, DUMP: "OK\r\nEN\r\n", MARK: "HD\r\n", "7": ""}
"""The replies of a server without items."""


def deadline() -> Deadline:
    """Enough for a busy machine."""
    return Deadline(waiting.STEP)


def attempt(
    replies: Mapping[str, str], number: int = 0, login: str = "", greeting: str = ""
) -> tuple[Slot, str, list[str]]:
    """Sweep a slot once: the slot, its problem, and the commands that it got. Slot 0 is the home of all keys."""
    stub, problem = Stub(replies, login, greeting=greeting), ""
    with memcached(stub) as port:
        slot = Slot(number, "127.0.0.1", port)
        try:
            slot.sweep(CHANGE, deadline())
        except SlotError as error:
            problem = str(error)
    return slot, problem, stub.commands


def test_slot_without_items_gets_the_marker() -> None:
    slot, problem, commands = attempt(EMPTY)
    assert (slot.done, slot.skipped, slot.removed, problem) == (True, False, 0, "")
    assert commands == [READ, "mn", "stats", DUMP, MARK, "7"]


def test_slot_with_the_marker_of_the_change_is_left_as_it_is() -> None:
    slot, _, commands = attempt(EMPTY | {READ: "VA 1\r\n7\r\n"})
    assert (slot.done, slot.skipped) == (True, True)
    assert commands == [READ, "mn"]


@pytest.mark.parametrize("value", ["6", "77", ""])
def test_marker_of_another_change_does_not_count(value: str) -> None:
    slot, _, commands = attempt(EMPTY | {READ: f"VA {len(value)}\r\n{value}\r\n"})
    assert (slot.done, slot.skipped) == (True, False)
    assert DUMP in commands


def test_busy_crawler_gets_no_command() -> None:
    slot, problem, commands = attempt(EMPTY | {"stats": RUNNING})
    assert (slot.done, problem) == (False, "is busy with another dump or crawl of its items")
    assert not {DUMP, MARK} & set(commands)


PROBLEMS: Final = {
    "old release": (
        {DUMP: "ERROR\r\n"},
        "replied 'ERROR' to `lru_crawler mgdump hash`: use memcached 1.6.40 or later, with its LRU crawler and dumps",
    ),
    "crawler is busy": ({DUMP: "BUSY x\r\n"}, "is busy with another dump or crawl of its items"),
    "hash table grows": ({DUMP: "OK\r\nERROR locked x\r\n"}, "is busy with another dump or crawl of its items"),
    "no memory for the marker": (
        {MARK: "SERVER_ERROR out of memory\r\n"},
        "replied 'SERVER_ERROR out of memory' to `ms",
    ),
    "marker not stored": ({MARK: "NS\r\n"}, "replied 'NS' to `ms"),
    "no statistics": ({"stats": "ERROR\r\n"}, "replied 'ERROR' to `stats`"),
    "endless reply": ({"stats": "x" * 70000}, "replied 'xxx"),
}


@pytest.mark.parametrize(("replies", "expected"), PROBLEMS.values(), ids=PROBLEMS)
def test_unexpected_reply(replies: Mapping[str, str], expected: str) -> None:
    slot, problem, _ = attempt({**EMPTY, **replies})
    assert not slot.done
    assert problem.startswith(expected)


def test_items_that_come_back_are_a_problem() -> None:
    key = "key-of-slot-1"
    replies = EMPTY | {DUMP: f"OK\r\nmg {key}\r\nEN\r\n", f"md {key}": "HD\r\n"}
    slot, problem, commands = attempt(replies, 1)
    assert problem == "has items of other slots after 20 dumps: a client writes to it without a proxy"
    assert (slot.removed, slot.done, MARK in commands) == (20, False, False)


def test_items_that_do_not_exist_are_done() -> None:
    """They have expired since the dump, or are parts of one key."""
    slot, problem, commands = attempt(
        EMPTY | {DUMP: "OK\r\nmg a\r\nmg b\r\nEN\r\n", "md a": "NF\r\n", "md b": "NF\r\n"}, 1
    )
    assert (slot.done, slot.removed, problem) == (True, 0, "")
    assert [commands.count(each) for each in (DUMP, "md a", "md b", MARK)] == [1, 1, 1, 1]


def test_dump_that_was_given_up_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another sweep has deleted what its first part lists."""
    monkeypatch.setattr("memcached_agent.sweep.slot.MAX_PENDING", 100)
    keys = [f"key-{number}" for number in range(20000)]
    listed = "".join(f"mg {key}\r\n" for key in keys)
    slot, _, commands = attempt(EMPTY | {DUMP: f"OK\r\n{listed}EN\r\n"} | {f"md {key}": "NF\r\n" for key in keys}, 1)
    assert not slot.done
    assert (commands.count(DUMP) > 1, MARK in commands) == (True, False)


def test_login_and_connection_limit() -> None:
    assert attempt(EMPTY, login="a b")[1].startswith("replied 'CLIENT_ERROR unauthenticated' to `mg ")
    problem = attempt(EMPTY, greeting="ERROR Too many open connections\r\n")[1]
    assert re.match("replied 'ERROR Too many open connections'|closed the connection", problem)


def test_slot_that_refuses_connections() -> None:
    with pytest.raises(SlotError, match=r"^refuses the connection: nothing listens on this port$"):
        Slot(0, "127.0.0.1", free_port()).sweep(CHANGE, deadline())


def test_wait_that_the_deadline_ends_is_no_problem_of_the_slot() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(TimeIsUpError):
        Slot(0, "127.0.0.1", silent.getsockname()[1]).sweep(CHANGE, Deadline(0.2))


def test_problem_is_over_when_the_slot_lists_its_keys() -> None:
    stub = Stub(EMPTY | {MARK: "NS\r\n"})
    with memcached(stub) as port:
        slot = Slot(0, "127.0.0.1", port)
        slot.problem = "is busy"
        with pytest.raises(SlotError):
            slot.sweep(CHANGE, deadline())
    assert slot.problem == ""


def test_name_that_does_not_exist() -> None:
    with pytest.raises(SlotError, match=r"^cannot be reached: "):
        Slot(0, "slot.invalid", 11211).sweep(CHANGE, deadline())


def test_slots_are_tried_until_all_are_done() -> None:
    lines = list[str]()
    busy, free = Stub(EMPTY | {"stats": RUNNING}), Stub(EMPTY)

    def log(line: str) -> None:
        lines.append(line)
        busy.replies = EMPTY

    with memcached(busy) as first, memcached(free) as second:
        slots = [Slot(0, "127.0.0.1", first), Slot(1, "127.0.0.1", second)]
        assert sweep(slots, CHANGE, deadline(), log)
    assert [slot.done for slot in slots] == [True, True]
    assert lines == [
        f"slot 0 (127.0.0.1:{first}) is busy with another dump or crawl of its items. The sweep tries again"
    ]
    assert free.commands.count(DUMP) == 1


def test_each_problem_is_logged_once() -> None:
    lines = list[str]()
    attempts = iter(range(2))

    class Attempts(Deadline):
        """Time for two pauses."""

        def wait(self, longest: float = 5.0) -> float:
            if longest < 1 and next(attempts, None) is None:
                raise TimeIsUpError
            return min(longest, 5.0)

    port = free_port()
    assert not sweep([Slot(0, "127.0.0.1", port)], CHANGE, Attempts(0), lines.append)
    assert len(lines) == 1
    assert next(attempts, None) is None


REQUIRED: Final = ("--old=3", "--new=4", "--change=7", "--host=s-{}.s")
INVALID: Final[dict[str, tuple[list[str], str]]] = {
    "no option": ([], "the following arguments are required: --old, --new, --change, --host"),
    "same sizes": ([*REQUIRED, "--new=3"], "--old and --new must differ"),
    "no slots": ([*REQUIRED, "--old=0"], "argument --old: '0': use a number from 1 to 1000"),
    "too many slots": ([*REQUIRED, "--new=1001"], "argument --new: '1001': use a number from 1 to 1000"),
    "no number": ([*REQUIRED, "--change=x"], "argument --change: 'x': use a number from 1 to"),
    "large number": ([*REQUIRED, f"--change={2**63}"], "use a number from 1 to 9223372036854775807"),
    "negative number": ([*REQUIRED, "--change=-1"], "argument --change: '-1': use a number from 1 to"),
    "one host": ([*REQUIRED, "--host=cache"], "argument --host: 'cache': use a name of at most 253 characters with {}"),
    "two places": ([*REQUIRED, "--host={}.{}"], "'{}.{}': use a name"),
    "no name": ([*REQUIRED, "--host=a b{}"], "'a b{}': use a name"),
    "port 0": ([*REQUIRED, "--port=0"], "argument --port: '0': use a number from 1 to 65535"),
    "no time": ([*REQUIRED, "--timeout=0"], "argument --timeout: '0': use a number from 1 to 86400"),
    "abbreviation": ([*REQUIRED, "--time=3"], "unrecognized arguments: --time=3"),
}


@pytest.mark.parametrize(("arguments", "message"), INVALID.values(), ids=INVALID)
def test_invalid_command_line(arguments: list[str], message: str) -> None:
    done = finished("sweep", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("memcached-agent sweep: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_describes_every_option_with_its_default() -> None:
    done = finished("sweep", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    found = set(re.findall(r"^  (?:-h, )?(--[a-z-]+)", done.stdout, re.MULTILINE))
    assert found == {"--old", "--new", "--change", "--host", "--port", "--timeout", "--help"}
    text = " ".join(done.stdout.split())
    assert text.count("; required") == 4
    assert "(default: 11211)" in text
    assert "(default: 240)" in text


def test_last_line_of_a_failed_sweep_names_slot_and_cause() -> None:
    port = free_port()
    done = finished("sweep", "--old=3", "--new=2", "--change=7", "--host=127.0.0.1{}", f"--port={port}", "--timeout=1")
    assert (done.returncode, done.stdout) == (1, "")
    *problems, last = done.stderr.splitlines()
    assert last == (
        f"slot 0 (127.0.0.10:{port}) refuses the connection: nothing listens on this port. "
        "The sweep has failed after 1 s. Other slots that are not swept: 1"
    )
    assert len(problems) == 2
