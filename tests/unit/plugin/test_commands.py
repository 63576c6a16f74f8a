"""The commands other than `status` and `report`: their requests to memcached and the API server, and their output."""

import json
import os
from typing import Any

import pytest

from support.kubectl_program import WARNING
from unit.plugin.conftest import Run, World
from unit.plugin.samples import AUTH, lines, memcached, stats

ITEM = "ME user:7 exp=3599 la=42 cas=9 fetch=yes cls=3 size=1234\r\n"
FOREVER = "ME user:7 exp=-1 la=0 cas=9 fetch=no cls=3 size=67\r\n"


def answer(world: World, command: str, *replies: str) -> None:
    """Set the replies of each pod to a command."""
    for stub, reply in zip(world.stubs, replies, strict=True):
        stub.replies = {**stub.replies, command: reply}


def test_key_in_several_pods_is_explained(world: World, run: Run) -> None:
    answer(world, "me user:7", FOREVER, ITEM)
    result = run("find", "sessions", "user:7")
    assert result.output.splitlines()[1].split()[:3] == ["sessions-0", "67", "never"]
    assert "2 pods have the key: clients use different lists of servers" in result.output
    lookups = json.loads(run("find", "sessions", "user:7", "-o", "json").output)["pods"]
    assert [lookup["item"]["expiresInSeconds"] for lookup in lookups] == [None, 3599]


@pytest.mark.parametrize(
    ("replies", "code"), [(("EN\r\n", "EN\r\n"), 1), (("EN\r\n", "ERROR\r\n"), 6), ((ITEM, "ERROR\r\n"), 0)]
)
def test_exit_code_of_find(replies: tuple[str, str], code: int, world: World, run: Run) -> None:
    answer(world, "me user:7", *replies)
    assert run("find", "sessions", "user:7").code == code


@pytest.mark.parametrize("key", ["", "a b", "a\nflush_all", "ä" * 126])
def test_key_that_memcached_cannot_have_is_not_sent(key: str, world: World, run: Run) -> None:
    assert run("find", "sessions", key).code == 2
    assert world.kubectl.calls() == []


def test_key_that_is_not_utf8_is_a_usage_error(run: Run) -> None:
    result = run("find", "sessions", os.fsdecode(b"k\xff"))
    assert (result.code, result.error) == (2, "The key is not valid UTF-8: `find` does not support such keys.")


def patches(world: World) -> list[Any]:
    """The patches so far."""
    words = [word for call in world.kubectl.calls() for word in call if word.startswith("--patch=")]
    return [json.loads(word.removeprefix("--patch=")) for word in words]


def test_pause_and_resume(world: World, run: Run) -> None:
    assert run("pause", "sessions").code == 0
    assert run("resume", "sessions").output == "Memcached sessions: the rollout was not paused.\n"
    world.cr["spec"]["rollout"] = {"paused": True}
    assert run("resume", "sessions").code == 0
    assert patches(world) == [{"spec": {"rollout": {"paused": value}}} for value in (True, False)]


def test_restart_of_a_paused_rollout_says_so(world: World, run: Run) -> None:
    world.cr["spec"]["rollout"] = {"paused": True}
    result = run("restart", "sessions")
    (patch,) = patches(world)
    assert list(patch["spec"]["rollout"]) == ["restartedAt"]
    assert "the restart begins after kubectl memcached resume sessions" in result.output
    assert result.error == WARNING.replace("\x1b", "\N{REPLACEMENT CHARACTER}")


@pytest.mark.parametrize("command", ["restart", "pause"])
def test_cluster_of_an_older_operator_without_the_field(command: str, world: World, run: Run) -> None:
    world.kubectl.pruned = ["rollout"]
    result = run(command, "sessions")
    assert (result.code, result.output) == (4, "")
    assert result.error.startswith("This cluster's Memcacheds have no field spec.rollout.")


def flushed(world: World) -> list[bool]:
    """Whether each pod was flushed."""
    return ["flush_all" in stub.commands for stub in world.stubs]


@pytest.mark.parametrize(("text", "code"), [("n\n", 1), ("", 2)])
def test_flush_asks(text: str, code: int, world: World, run: Run) -> None:
    assert (run("flush", "sessions", text=text).code, flushed(world)) == (code, [False, False])


def test_pod_that_is_being_deleted_is_not_flushed(world: World, run: Run) -> None:
    """Its node can be lost: the flush could never end, and each try would empty the first pods again."""
    answer(world, "flush_all", "OK\r\n", "OK\r\n")
    world.pods[0]["metadata"]["deletionTimestamp"] = "2030-01-01T12:00:00Z"
    result = run("flush", "sessions", "--rate=6000", text="y\n")
    assert (result.code, flushed(world)) == (0, [False, True])
    assert "Delete all items of 1 pods" in result.error
    first, second = (pod["metadata"]["name"] for pod in world.pods)
    assert result.output == f"{first}: is being deleted, and not flushed\n{second}: flushed, 1 of 1\n"


def test_failed_pod_stops_the_flush(world: World, run: Run) -> None:
    world.use(memcached({"auth": AUTH}))
    world.stubs[0].login = "web secret"
    answer(world, "flush_all", "OK\r\n", "OK\r\n")
    world.kubectl.forbid("get", "secret")
    result = run("flush", "sessions", "--yes", "--rate=6000")
    assert (result.code, flushed(world)) == (5, [False, False])


def test_stats_side_by_side(run: Run) -> None:
    result = run("stats", "sessions")
    header, *rows = result.output.splitlines()
    assert header.split() == ["STAT", "sessions-0", "sessions-1"]
    assert ["curr_items", "250", "250"] in [row.split() for row in rows]


def test_pods_that_do_not_fit_follow_below(run: Run) -> None:
    headers = [line.split() for line in run("stats", "sessions", COLUMNS="40").output.splitlines() if "STAT" in line]
    assert headers == [["STAT", "sessions-0"], ["STAT", "sessions-1"]]


def test_values_by_slab_class(world: World, run: Run) -> None:
    hits = {"2:get_hits": 7, "2:touch_hits": 5}
    world.use(memcached(), slabs=lines({"12:chunk_size": 1184, "2:chunk_size": 120, **hits, "active_slabs": 2}))
    document = json.loads(run("stats", "sessions", "--slabs", "-o", "json").output)
    classes = document["pods"][0]["stats"]["classes"]
    assert classes == {"2": {"chunk_size": "120", "get_hits": "7", "touch_hits": "5"}, "12": {"chunk_size": "1184"}}
    assert [row.split()[-1] for row in run("stats", "sessions", "--slabs").output.splitlines()[2:4]] == ["12", "-"]


def test_pod_of_another_cache_is_an_error(run: Run) -> None:
    result = run("stats", "sessions", "--pod", "other-0")
    assert (result.code, result.error) == (4, "There is no pod other-0: the pods are sessions-0, sessions-1.")


def test_pod_without_stats_has_a_reason(world: World, run: Run) -> None:
    world.stubs[1].greeting = "ERROR Too many open connections\r\n"
    result = run("stats", "sessions")
    assert result.code == 6
    assert result.output.startswith("sessions-1: memcached of sessions-1 has reached its connection limit")


@pytest.mark.parametrize("command", ["flush", "top", "ring", "hotkeys"])
def test_cache_without_pods(command: str, world: World, run: Run) -> None:
    world.use(memcached(), 0)
    result = run(command, "sessions")
    assert (result.code, result.error) == (6, "Memcached sessions has no pods.")


def test_rates_of_one_interval(world: World, run: Run) -> None:
    for stub in world.stubs:
        first, *others = [stats(get_hits=1740 + 400 * number, get_misses=260 + 100 * number) for number in range(2)]
        stub.replies = Sequenced(stub.replies, "stats", [first, *others])
    result = run("top", "sessions", "--once", "--interval=0.5", "-o", "json")
    document = json.loads(result.output)
    assert 0 < document["pods"][0]["getsPerSecond"] <= 1000
    assert {rates["pod"] for rates in document["pods"]} == {"sessions-0", "sessions-1"}
    assert (document["total"]["connections"], document["pods"][0]["setsPerSecond"]) == (24, 0)


class Sequenced(dict[str, str]):
    """Replies, of which one command has others each time."""

    def __init__(self, others: Any, command: str, replies: list[str]) -> None:
        super().__init__(others)
        self._command, self._replies = command, replies

    def get(self, key: str, default: Any = None) -> Any:
        """The next reply."""
        return self._replies.pop(0) if key == self._command and self._replies else super().get(key, default)


def test_top_without_a_terminal_prints_one_interval(world: World, run: Run) -> None:
    world.stubs[1].greeting = "ERROR Too many open connections\r\n"
    result = run("top", "sessions", "--interval=0.5")
    assert [line.split()[0] for line in result.output.splitlines()[:4]] == ["POD", "sessions-0", "sessions-1", "total"]
    assert "sessions-1: memcached of sessions-1 has reached its connection limit" in result.output
    assert max(map(len, result.output.splitlines()[:4])) <= 80
