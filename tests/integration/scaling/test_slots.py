"""The slots that the handler computes for keys of all lengths: those of memcached, and of support.scaling.placement."""

import random
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Final

from corners.client import Client
from memcached_operator.memcachedproxy.desired.handler import handler
from support.scaling.placement import slot_of
from support.scaling.processes import memcacheds, plain, proxy

SIZES: Final = (1, 2, 3, 4, 5, 6, 7, 8, 30, 505)
SERVERS: Final = 7
LENGTHS: Final = range(1, 251)
PRINTED: Final = """
function route_slots_conf(options) return options end
function route_slots_start(options, ctx, generator)
    local function reply(req)
        local found = {}
        for i, size in ipairs{ %s } do found[i] = slot(req:key(), size) end
        return "HD " .. table.concat(found, ",") .. "\\r\\n"
    end
    generator:ready({ n = ctx:label(), f = function() return reply end })
end
register_route_handlers({ "slots" })
"""
"""A handler in the same file: it replies with the slots of a key for SIZES."""


def keys() -> list[bytes]:
    """40 keys of each length, with all bytes that a key can have."""
    draw = random.Random(5)  # noqa: S311 - not a secret
    allowed = [*range(0x21, 0x7F), *range(0x80, 0x100)]
    return list({bytes(draw.choices(allowed, k=length)) for length in LENGTHS for _ in range(40)})


KEYS: Final = keys()


def replies(client: Client, requests: Iterable[bytes]) -> list[bytes]:
    """The replies to requests that each have one line, in batches."""
    listed, found = list(requests), list[bytes]()
    for start in range(0, len(listed), 100):
        batch = b"".join(listed[start : start + 100])
        reply = client.request(batch + b"mn\r\n", b"MN\r\n")
        found += reply.removesuffix(b"MN\r\n").splitlines()
    return found


def test_handler_computes_the_slots_of_the_model(root: Path) -> None:
    text = plain([1], 1).replace("route_direct{", "route_slots{")
    program = handler() + PRINTED % ", ".join(map(str, SIZES))
    with proxy(root, text, program) as front, closing(front.connect()) as client:
        found = replies(client, (b"mg %b\r\n" % key for key in KEYS))
    expected = [f"HD {','.join(str(slot_of(key, size)) for size in SIZES)}".encode() for key in KEYS]
    assert len(KEYS) > 9_500
    assert [pair for pair in zip(KEYS, found, expected, strict=True) if pair[1] != pair[2]] == []


def test_memcached_stores_keys_at_the_slots_of_the_model(root: Path) -> None:
    with memcacheds(root, SERVERS) as servers:
        with proxy(root, plain([each.port for each in servers], SERVERS)) as front, closing(front.connect()) as client:
            assert set(replies(client, (b"ms %b 1 T0\r\nv\r\n" % key for key in KEYS))) == {b"HD"}
        for slot, server in enumerate(servers):
            with closing(server.connect()) as client:
                expected = [key for key in KEYS if slot_of(key, SERVERS) == slot]
                assert int(client.stats()["curr_items"]) == len(expected)
                assert set(replies(client, (b"mg %b\r\n" % key for key in expected))) == {b"HD"}
