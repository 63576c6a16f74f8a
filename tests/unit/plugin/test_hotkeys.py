"""`hotkeys`, and what it shares with `ring`: reading the log of memcached, and errors."""

import json
import random
from collections import Counter

import pytest

from kubectl_memcached.cluster.watching import dropped
from kubectl_memcached.model.statistics.hot import Hot, PodTraffic, SpaceSaving, hottest
from kubectl_memcached.model.statistics.replies import parse_stats
from kubectl_memcached.model.watching import readable, requested, stored
from unit.plugin.conftest import Run, World
from unit.plugin.samples import RESOURCE, memcached, stats
from unit.plugin.test_commands import Sequenced

LINES = b"""\
ts=1795680122.361906 gid=4 type=item_store key=a%25b status=stored cmd=set ttl=0 clsid=1 cfd=29 size=1
ts=1795680122.361911 gid=5 type=item_get key=k%C3%A4 status=not_found clsid=0 cfd=29 size=0
ts=1795680122.361914 gid=9 type=item_get key=a%25b status=found clsid=1 cfd=29 size=120
skipped=12
ts=1795680122.361914 gid=10 type=item_get key=old status=found
"""


def test_lines_of_the_log() -> None:
    assert list(stored(LINES)) == [b"a%b"]
    assert list(requested(LINES)) == [(b"k%C3%A4", 0), (b"a%25b", 120), (b"old", 0)]


@pytest.mark.parametrize(("key", "text"), [(b"k%C3%A4", "kä"), (b"a%1B[2J", "a%1B[2J"), (b"%FF", "%FF")])
def test_key_cannot_control_a_terminal(key: bytes, text: str) -> None:
    assert readable(key) == text


def test_frequent_keys_are_counted_in_bounded_memory() -> None:
    generator = random.Random(1)  # noqa: S311 - not for cryptography
    requests = [b"%d" % min(10**6, int(generator.paretovariate(0.6))) for _ in range(20000)]
    exact, counts = Counter(requests), SpaceSaving(capacity=200)
    for key in requests:
        counts.add(key, 0)
    top = counts.top(5)
    assert [hot.key for hot in top] == [key for key, _ in exact.most_common(5)]
    for hot in top:
        assert hot.requests - hot.excess <= exact[hot.key] <= hot.requests
        assert hot.excess <= len(requests) / 200
    assert counts.total == len(requests)


def test_rare_keys_do_not_look_frequent() -> None:
    counts = SpaceSaving(capacity=10)
    for number in range(1000):
        counts.add(b"%d" % number, 0)
    assert counts.top(10) == []


def test_share_of_a_key_in_several_pods() -> None:
    first = PodTraffic("p-0", 100, 10.0, 0, (Hot(b"a", 50, 0, 7), Hot(b"b", 20, 0, 0)))
    second = PodTraffic("p-1", 300, 10.0, 0, (Hot(b"a", 150, 0, 9),))
    found = hottest([first, second, PodTraffic("p-2", problem="away")], 20)
    assert [(key.key, key.share, key.rate, key.size, key.pods) for key in found] == [
        (b"a", 0.5, 20.0, 9, {"p-0": 0.5, "p-1": 0.5}),
        (b"b", 0.05, 2.0, 0, {"p-0": 0.2}),
    ]


def test_lost_lines() -> None:
    before, after = (parse_stats(stats(log_worker_dropped=5, log_watcher_skipped=skipped)) for skipped in (1, 4))
    assert dropped(before, after) == 3
    assert dropped(before, {**after, "pid": "2"}) is None


def watch(world: World, reply: str, flag: str = "fetchers") -> None:
    """Set the reply of each memcached to `watch`."""
    for stub in world.stubs:
        stub.replies = {**stub.replies, f"watch {flag}": reply}


def test_hot_keys_of_a_cache(world: World, run: Run) -> None:
    watch(world, "OK\r\n" + LINES.decode())
    lost = [stats(log_worker_dropped=number, log_watcher_skipped=0) for number in (0, 12)]
    for stub in world.stubs:
        stub.replies = Sequenced(stub.replies, "stats", [*lost])
    document = json.loads(run("hotkeys", "sessions", "--seconds=1", "-o", "json").output)
    assert [(key["key"], key["share"], key["valueBytes"]) for key in document["keys"]] == [
        ("a%b", 0.3333, 120),
        ("kä", 0.3333, None),
        ("old", 0.3333, None),
    ]
    assert [pod["lostLines"] for pod in document["pods"]] == [12, 12]
    world.stubs[1].replies = Sequenced(world.stubs[1].replies, "stats", lost)
    result = run("hotkeys", "sessions", "--seconds=1", "--pod=sessions-1")
    assert result.code == 0
    assert "memcached dropped 80% of its lines." in result.output
    assert ["sessions-1", "a%b"] in [line.split()[4:] for line in result.output.splitlines()]
    assert max(map(len, result.output.splitlines())) <= 80


def test_pod_with_very_many_requests_is_watched_for_a_shorter_time(
    world: World, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubectl_memcached.cluster.watching.MAX_LINES", 3)
    watch(world, "OK\r\n" + LINES.decode())
    document = json.loads(run("hotkeys", "sessions", "--seconds=30", "-o", "json").output)
    assert document["requestsPerSecond"] > 1, "it did not end before its time"


def test_cache_without_requests(world: World, run: Run) -> None:
    watch(world, "OK\r\n")
    result = run("hotkeys", "sessions", "--seconds=1")
    assert (result.code, result.output.splitlines()[0]) == (1, "No requests in 1 s.")


@pytest.mark.parametrize(("command", "flag"), [("hotkeys", "fetchers"), ("ring", "mutations")])
def test_blocked_watch_names_the_option(command: str, flag: str, world: World, run: Run) -> None:
    watch(world, "CLIENT_ERROR watch commands not allowed\r\n", flag)
    result = run(command, "sessions", "--seconds=1")
    assert result.code == 7
    assert "memcached runs with --disable-watch: remove it from spec.cache.extraArgs" in result.error


def test_memcached_without_the_flag_is_named_with_its_version(world: World, run: Run) -> None:
    watch(world, "ERROR\r\n")
    result = run("hotkeys", "sessions", "--seconds=1", COLUMNS="200")
    assert result.code == 6
    assert "memcached 1.6.45 of sessions-0 does not support `watch fetchers`: it replied 'ERROR'" in result.output


def test_missing_right_is_an_error_of_the_command(world: World, run: Run) -> None:
    world.kubectl.forbid("port-forward", "pod")
    assert run("hotkeys", "sessions", "--seconds=1").code == 5


@pytest.mark.parametrize("command", ["hotkeys", "ring"])
def test_cache_with_too_many_pods(command: str, world: World, run: Run) -> None:
    world.use(memcached({"size": 33}), 33)
    result = run(command, "sessions")
    assert (result.code, "choose some with --pod" in result.error) == (2, True)


def test_app_service_is_not_a_cache(world: World, run: Run) -> None:
    world.kubectl.objects = {"appservices.app.example.com": [{"metadata": {"name": "web"}}]}
    result = run("ring", "web")
    assert (result.code, result.error.startswith("web is an AppService.")) == (4, True)
    assert run("ring", "none").error == f'kubectl cannot read Memcached none: {RESOURCE} "none" not found'
