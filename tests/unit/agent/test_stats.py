"""Parsing the replies to `stats` commands."""

import pytest

from memcached_agent.memcached.stats import number, parse_stats, statistics

from .samples import replies


def test_values_may_be_empty_or_contain_spaces() -> None:
    assert parse_stats(b"STAT a 1\r\nSTAT b \r\nSTAT c x y\r\nSTAT d\r\nEND\r\n") == {
        "a": "1",
        "b": "",
        "c": "x y",
        "d": "",
    }
    assert parse_stats(b"END\r\n") == {}


INVALID = {
    "nothing": b"",
    "no END": b"STAT a 1\r\n",
    "an error": b"ERROR\r\nEND\r\n",
    "another reply": b"STAT a 1\r\nEND\r\nEND\r\n",
    "a value": b"VALUE a 0 1\r\n1\r\nEND\r\n",
    "a line without a name": b"STAT\r\nEND\r\n",
    "an empty line": b"\r\nEND\r\n",
    "END in a line": b"STAT a END\r\nSTAT bEND\r\n",
}


@pytest.mark.parametrize("reply", INVALID.values(), ids=INVALID.keys())
def test_invalid_replies_are_errors(reply: bytes) -> None:
    with pytest.raises(ValueError, match="line"):
        parse_stats(reply)


def test_message_about_an_invalid_line_is_bounded() -> None:
    with pytest.raises(ValueError, match="invalid line") as raised:
        parse_stats(b"x" * 1000 + b"\r\nEND\r\n")
    assert len(str(raised.value)) < 80


NUMBERS = {
    "0": 0, "18446744073709551615": 2**64 - 1, "0.042991": 0.042991, "yes": 1, "no": 0,
    "": None, "-1": None, "nan": None, "inf": None, "1e9": None, "1_000": None, " 1": None, "٣": None, "(null)": None,
    "1." : None, "9" * 33: None, "NULL": None,
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), NUMBERS.items())
def test_number(text: str, expected: float | None) -> None:
    assert number(text) == expected


def test_missing_number() -> None:
    assert number(None) is None


def test_values_of_slab_classes_are_grouped() -> None:
    items = b"STAT items:2:age 5\r\nSTAT items:63:age 6\r\nSTAT items:2:number 7\r\nEND\r\n"
    slabs = b"STAT 2:used_chunks 1\r\nSTAT active_slabs 1\r\nEND\r\n"
    found = statistics(b"STAT a 1\r\nEND\r\n", b"STAT b 2\r\nEND\r\n", items, slabs)
    assert found == ({"a": "1"}, {"b": "2"}, {2: {"age": "5", "number": "7"}, 63: {"age": "6"}},
                     {2: {"used_chunks": "1"}}, {"active_slabs": "1"}, None, None)  # fmt: skip


@pytest.mark.parametrize("slab", ["0", "64", "01", "-1", "1" * 5000, "x", ""])
def test_invalid_slab_classes_are_ignored(slab: str) -> None:
    found = replies() | {"stats items": f"STAT items:{slab}:age 5\r\nEND\r\n".encode()}
    assert statistics(*found.values()).items == {}
