"""The examples of docs/plugin.md are what the program prints at 80 columns."""

import re
import shlex
from pathlib import Path

import pytest

from unit.plugin.conftest import Run, World
from unit.plugin.samples import TLS, lines, memcached, stats

PAGE = Path(__file__).parents[3] / "docs/plugin.md"
WIDTH = 80
NOW = 1763718120.0
"""2026-11-21 of the page, in which the conditions are a day and a half old."""
ITEM = "ME user:7 exp=3599 la=42 cas=9 fetch=yes cls=14 size=1234\r\n"
METRICS = f"""\
memcached_agent_warm {{warm}}
memcached_agent_hit_ratio 0.43
memcached_agent_target_hit_ratio 0.8
memcached_agent_certificate_expiration_timestamp_seconds {NOW + 62.5 * 86400}
"""
SLABS = {
    "items": {
        "items:1:number": 210,
        "items:1:age": 5120,
        "items:14:number": 40,
        "items:14:age": 830,
        "items:14:evicted": 31,
    },
    "slabs": {
        "1:chunk_size": 96,
        "1:total_pages": 1,
        "1:used_chunks": 210,
        "14:chunk_size": 1856,
        "14:total_pages": 60,
    },
}


def examples() -> dict[str, str]:
    """Each command line of the page with its output."""
    blocks = re.findall(r"```console\n\$ kubectl memcached (.*)\n((?:.*\n)*?)```", PAGE.read_text())
    return dict(blocks)


@pytest.fixture
def cache(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """The cache of the page: three slots with TLS, of which one has too little memory."""
    monkeypatch.setattr("time.time", lambda: NOW)
    cr = memcached({"size": 3, "tls": TLS, "monitoring": {}, "rollout": {"warmUp": {}}})
    cr["status"] |= {"readyReplicas": 3}
    for condition in cr["status"]["conditions"]:
        condition["lastTransitionTime"] = "2025-11-19T21:00:00Z"
    world.use(cr, 3, **{name: lines(values) for name, values in SLABS.items()})
    world.responses["/metrics"] = (200, METRICS.format(warm=1))
    full = stats(bytes=66437775, evictions=31, total_items=900, curr_connections=871)
    for stub, reply in zip(world.stubs, ("EN\r\n", "EN\r\n", ITEM), strict=True):
        stub.replies = {**stub.replies, "me user:7": reply, "flush_all": "OK\r\n"}
    world.stubs[1].replies = {**world.stubs[1].replies, "stats": full}
    return world


@pytest.mark.parametrize("words", examples())
@pytest.mark.usefixtures("cache")
def test_example_is_the_output(words: str, run: Run) -> None:
    shown = examples()[words]
    fast = ["--rate=6000"] if words.startswith("flush") else []
    printed = run(*shlex.split(words), *fast, text="y\n").output
    assert max(map(len, printed.splitlines())) <= WIDTH
    if words.startswith("top"):  # the rates depend on the time between the samples
        assert printed.splitlines()[0].split() == shown.splitlines()[0].split()
    else:
        assert printed == shown
