"""The parser of the lines of `watch evictions mutations`."""

import pytest

from memcached_agent.insight.lines import ALL, NEVER, parse

from .evicting import STARTED, eviction, store

RECORDED = [
    b"ts=1795679961.750813 gid=2 type=item_store key=a status=stored cmd=set ttl=0 clsid=1 cfd=16 size=3",
    b"ts=1795679961.750896 gid=4 type=item_store key=a status=not_stored cmd=add ttl=0 clsid=1 cfd=16 size=1",
    b"ts=1795679961.75 gid=6 type=item_store key=a%2B%25b status=stored cmd=set ttl=5 clsid=1 cfd=16 size=3",
    b"ts=1795679962.258143 gid=935 type=eviction key=key321 fetch=no ttl=-1 la=0 clsid=22 size=10000",
    b"ts=1795679962.258145 gid=937 type=eviction key=a%2B%25b fetch=yes ttl=100 la=0 clsid=22 size=10000",
]
"""Of memcached 1.6.18 and 1.6.38."""


def test_recorded_lines() -> None:
    batch = parse(RECORDED, ALL)
    assert batch[:3] == (2, 2, 0)
    assert [event._replace(key=0) for event in batch.events] == [
        (2, 0, 1795679961, False, NEVER, 0, 0),
        (6, 0, 1795679961, False, NEVER, 0, 0),
        (935, 0, 1795679962, True, NEVER, 22, 10000),
        (937, 0, 1795679962, True, 1795680062, 22, 10000),
    ]
    first, encoded, other, evicted = (event.key for event in batch.events)
    assert encoded == evicted, "both kinds of lines encode keys in the same way"
    assert len({first, encoded, other}) == 3


def test_events_are_in_the_order_of_memcached() -> None:
    lines = [store(9, "a"), eviction(10, "b"), store(2, "c"), eviction(1, "d")]
    assert [event.gid for event in parse(lines, ALL).events] == [1, 2, 9, 10]


def test_events_contain_no_key() -> None:
    text = repr(parse([store(1, "secret-key"), eviction(2, "secret-key")], ALL))
    assert "secret" not in text


def test_sample_has_the_same_keys_of_both_kinds() -> None:
    """All items are counted; of a tenth of the keys, about a tenth is sampled."""
    number = 5000
    batch = parse(
        [*(store(key, key) for key in range(number)), *(eviction(key, key) for key in range(number))], ALL // 10
    )
    stored, evicted = ({each.key for each in batch.events if each.evicted == kind} for kind in (False, True))
    assert stored == evicted
    assert (batch.stores, batch.evictions) == (number, number)
    assert number / 20 < len(stored) < number / 5


def test_lost_lines_are_counted() -> None:
    assert parse([b"skipped=7", store(1, "a"), b"skipped=2"], ALL).lost == 9


INVALID = [
    b"",
    b"ERROR",
    b"skipped=",
    b"skipped=x",
    b"RESET",
    eviction(1, "a").replace(b"gid=1", b"gid=x"),
    eviction(1, "a").replace(b"ttl=-1", b"ttl="),
    eviction(1, "a").replace(b"ts=", b"ts").replace(b".", b""),
    store(1, "a")[:60],
]


@pytest.mark.parametrize("line", INVALID)
def test_invalid_line(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"line|literal|substring|subsection"):
        parse([line], ALL)


def test_other_lines_of_a_watcher_have_no_effect() -> None:
    """A line of another type, such as `deletion`, is not an event."""
    line = eviction(1, "a", at=STARTED).replace(b"eviction", b"deletion")
    assert parse([line], ALL) == (0, 0, 0, [])
