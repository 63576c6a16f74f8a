from typing import Any

import pytest

from memcached_api.memcached.types import decode_spec
from memcached_operator.memcached.desired.pods import command
from unit.builders import memcached

COMMANDS: dict[str, tuple[dict[str, Any], str]] = {
    "defaults": ({}, "memcached -m 64 -p 11211 -U 0 -o modern -v"),
    "port": ({"containerPort": 12345}, "memcached -m 64 -p 12345 -U 0 -o modern -v"),
    "memory": ({"cache": {"memory": "1Gi"}}, "memcached -m 1024 -p 11211 -U 0 -o modern -v"),
    "memory from the limit": (
        {"resources": {"limits": {"memory": "1Gi"}}},
        "memcached -m 722 -p 11211 -U 0 -o modern -v",
    ),
    "memory before the limit": (
        {"cache": {"memory": "1Gi"}, "resources": {"limits": {"memory": "2Gi"}}},
        "memcached -m 1024 -p 11211 -U 0 -o modern -v",
    ),
    "memcached's own defaults": (
        {"cache": {"maxItemSize": "1Mi", "maxConnections": 1024, "threads": 4, "evictions": True, "verbosity": 1}},
        "memcached -m 64 -p 11211 -U 0 -o modern -v",
    ),
    "every setting": (
        {"cache": {"maxItemSize": "1.5Mi", "maxConnections": 100, "threads": 2, "evictions": False, "verbosity": 2}},
        "memcached -m 64 -p 11211 -U 0 -o modern -vv -I 1572864 -c 100 -t 2 -M",
    ),
    "no log": ({"cache": {"verbosity": 0}}, "memcached -m 64 -p 11211 -U 0 -o modern"),
    "memory is rounded down": ({"cache": {"memory": "3000Ki"}}, "memcached -m 2 -p 11211 -U 0 -o modern -v"),
    "memory in bytes": ({"cache": {"memory": 2**21}}, "memcached -m 2 -p 11211 -U 0 -o modern -v"),
}


@pytest.mark.parametrize(("spec", "line"), COMMANDS.values(), ids=COMMANDS.keys())
def test_command(spec: dict[str, Any], line: str) -> None:
    assert command(decode_spec(memcached(**spec))) == line.split()
