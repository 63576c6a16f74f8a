"""The decisions of a sweep: the home of a key, the keys in a dump, and the commands that delete items."""

import random
from base64 import b64encode
from typing import Final

import pytest

from kubectl_memcached.ring import hashes
from memcached_agent.sweep.connection import Deadline, SlotError, TimeIsUpError
from memcached_agent.sweep.dump import MARKER, MAX_ENCODED, BusyError, Dump, ReplyError, arguments, deletions
from memcached_agent.sweep.hash import MAX_KEY, home, jump, xxh3
from memcached_agent.sweep.slot import Pending, Slot
from memcached_agent.sweep.sweep import failure, success


def pattern(length: int) -> bytes:
    """Bytes of which the tables below have hashes."""
    return bytes((7 * index + length) % 251 for index in range(length))


VECTORS: Final[dict[int, int]] = dict(
    [
        *((1, 0xE12EF9D2EB86CEEB), (2, 0x33B0814D4F061D86), (3, 0xA9088DDA485B481C), (4, 0x57648C318A7A307E)),
        *((8, 0xB0FB3E3C3F94990A), (9, 0x8ACA5CB309437C2E), (16, 0x2BD926D88792965A), (17, 0x621F018AAD19B14A)),
        *((32, 0x8911535E799E4D99), (33, 0xB1E1D246D972758F), (65, 0x041802F929FDE152), (128, 0x104C5158A0B84B98)),
        *((129, 0x4FDE2D10F0BCDFEA), (240, 0xC8FCAF51FEC964B0), (241, 0xEE80E3642DBE5D90), (250, 0x8A96BC62106D3194)),
    ]
)
"""XXH3 by length, from the package xxhash 3.5.0."""
ALL: Final = 0x9208AB4DF8E4683E
"""The sum of the hashes of all lengths from 1 to MAX_KEY, 64 bits, from the same package."""


@pytest.mark.parametrize("length", VECTORS)
def test_hash_of_each_algorithm(length: int) -> None:
    assert xxh3(pattern(length)) == VECTORS[length]


def test_hashes_of_all_lengths() -> None:
    assert sum(xxh3(pattern(length)) for length in range(1, MAX_KEY + 1)) & 2**64 - 1 == ALL


def test_plugin_computes_the_same_homes() -> None:
    source = random.Random(1)  # noqa: S311 - not a secret
    for length in range(1, hashes.MAX_XXH3 + 1):
        key = source.randbytes(length)
        assert xxh3(key) == hashes.xxh3(key), length
        for slots in (1, 2, 3, 7, 64, 1000):
            assert home(key, slots) == jump(xxh3(key), slots) == hashes.jump(hashes.xxh3(key), slots)


TEXTS: Final = (b"a", b"\xd0\xba\xd0\xbb", b"caf\xe9", b"x\ty", b"k" * MAX_KEY, b"two\r\nlines", b"end\r\n", b"\nx")
LISTED: Final = b"".join(b"mg %b\r\n" % key for key in TEXTS)


@pytest.mark.parametrize("start", [b"OK\r\n", b""], ids=["1.6.45", "1.6.38"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 64, 10**6])
def test_keys_of_a_dump_however_it_arrives(start: bytes, size: int) -> None:
    dump, found, data = Dump(), list[bytes](), start + LISTED + b"EN\r\n"
    for at in range(0, len(data), size):
        assert not dump.complete
        found += dump.feed(data[at : at + size])
    assert (tuple(found), dump.complete) == (TEXTS, True)


@pytest.mark.parametrize("reply", [b"OK\r\nEN\r\n", b"EN\r\n"])
def test_dump_without_items(reply: bytes) -> None:
    dump = Dump()
    assert (dump.feed(reply), dump.complete) == ([], True)


@pytest.mark.parametrize("reply", [b"BUSY currently processing crawler request", b"OK\r\nERROR locked try again later"])
def test_server_that_cannot_list_its_keys_now(reply: bytes) -> None:
    dump = Dump()
    assert dump.feed(reply) == []
    with pytest.raises(BusyError):
        dump.feed(b"\r\n")


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (b"ERROR\r\n", b"ERROR"),
        (b"ERROR key dump not allowed\r\n", b"ERROR key dump not allowed"),
        (b"OK\r\nERROR an error\r\n", b"ERROR an error"),
        (b"x" * 600, b"x" * 512),
        (b"mg " + b"k" * 600, b"k" * 512),
    ],
)
def test_reply_that_is_no_dump(reply: bytes, line: bytes) -> None:
    with pytest.raises(ReplyError) as error:
        Dump().feed(reply)
    assert error.value.args[0].strip() == line


def encoded(key: bytes) -> tuple[bytes, bytes]:
    """The arguments of commands for a key in base64."""
    return b64encode(key), b" b"


ARGUMENTS: Final = {
    "a text": (b"user:1", (b"user:1", b"")),
    "UTF-8": ("ключ".encode(), ("ключ".encode(), b"")),
    "Latin-1": (b"caf\xe9", (b"caf\xe9", b"")),
    "a text that looks like base64": (b"aGVsbG8=", (b"aGVsbG8=", b"")),
    "base64": (b"aGVsbG8= b", (b"aGVsbG8=", b" b")),
    "base64 without padding": (b"aGVs b", (b"aGVs", b" b")),
    "base64 that lost its mark, with control characters": (b"\xff\x00bin", encoded(b"\xff\x00bin")),
    "base64 that lost its mark, with a space": (b"sp ace", encoded(b"sp ace")),
    "base64 that lost its mark, of two lines": (b"a\r\nmd b", encoded(b"a\r\nmd b")),
    "base64 that lost its mark, and ends like one": (b"no base64 b", encoded(b"no base64 b")),
    "base64 that lost its mark, of a space": (b" b", encoded(b" b")),
    "base64 that lost its mark, at most": (b"\x01" * MAX_ENCODED, encoded(b"\x01" * MAX_ENCODED)),
    "a text with a tab that is too long for base64": (b"\t" * 187, (b"\t" * 187, b"")),
    "no text, and too long for base64": (b"\n" * 187, None),
}


@pytest.mark.parametrize(("key", "expected"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_name_of_a_dumped_key_in_commands(key: bytes, expected: tuple[bytes, bytes] | None) -> None:
    assert arguments(key) == expected


def test_only_items_of_other_slots_are_deleted() -> None:
    dumped = {key: found for key, found in ARGUMENTS.values() if found}
    for slots in (1, 3, 4):
        for slot in range(4):
            elsewhere = [found for found in dumped.values() if home(found[0], slots) != slot]
            expected = [b"md %b%b\r\n" % found for found in elsewhere]
            assert list(deletions([*dumped, b"\n" * 187], slot, slots)) == expected


def test_marker_is_not_deleted() -> None:
    foreign = next(slot for slot in range(3) if home(MARKER, 3) != slot)
    assert list(deletions([MARKER], foreign, 3)) == []


def test_replies_to_deletions_in_parts() -> None:
    pending = Pending()
    pending.add([b"md a\r\n", b"md b\r\n"])
    pending.add([b"md c\r\n"])
    assert (pending.unsent, pending.unanswered) == (b"md a\r\nmd b\r\nmd c\r\n", 3)
    assert [pending.answered(each) for each in (b"HD\r\nN", b"F", b"\r\n")] == [1, 0, 0]
    assert pending.unanswered == 1
    assert pending.answered(b"HD\r\n") == 1
    assert pending.unanswered == 0


@pytest.mark.parametrize("reply", [b"CLIENT_ERROR bad\r\n", b"HD\r\nSERVER_ERROR x\r\n", b"HD\r\nHD\r\n"])
def test_unexpected_reply_to_a_deletion(reply: bytes) -> None:
    pending = Pending()
    pending.add([b"md a\r\n"])
    with pytest.raises(SlotError, match=r"^replied '.*' to `md`$"):
        pending.answered(reply)


def test_deadline_limits_each_wait() -> None:
    now = [10.0]
    deadline = Deadline(8, lambda: now[0])
    assert (deadline.wait(), deadline.wait(0.5)) == (5, 0.5)
    now[0] = 17.0
    assert deadline.wait() == 1
    now[0] = 18.0
    with pytest.raises(TimeIsUpError):
        deadline.wait()


def slots(*problems: str | None) -> list[Slot]:
    """Slots with these problems; None: the slot is done."""
    found = [Slot(number, f"cache-{number}", 11211) for number in range(len(problems))]
    for slot, problem in zip(found, problems, strict=True):
        slot.done, slot.problem = problem is None, problem or ""
    return found


def test_last_line_names_a_slot_and_the_cause() -> None:
    assert failure(slots(None, "", "hangs", "is busy"), 240) == (
        "slot 2 (cache-2:11211) hangs. The sweep has failed after 240 s. Other slots that are not swept: 3, 1"
    )
    found = slots(None, "")
    found[1].keys = 7
    assert failure(found, 1) == (
        "slot 1 (cache-1:11211) is not swept yet: 7 keys were read. The sweep has failed after 1 s"
    )


def test_last_line_of_a_sweep_has_its_result() -> None:
    found = slots(None, None, None)
    found[0].removed, found[2].removed, found[1].skipped = 5, 2, True
    assert success(found, 1.25) == "3 slots are swept (1 were before): 7 items removed in 1.2 s"
