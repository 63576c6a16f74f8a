"""What the corner tests send, without memcached."""

import re
import socket
import threading
from collections.abc import Sequence

import pytest

from corners import loads
from corners.client import Client
from corners.loads import batches, items, last_doubling

KEY = re.compile(rb"^ms (\S+) (\d+) q\r\n", re.MULTILINE)


@pytest.mark.parametrize(("count", "size"), [(1, 1), (9_999, 1), (10_000, 1), (25_000, 1), (50, 100_000), (3, 2**22)])
def test_batches_store_as_many_different_items(count: int, size: int) -> None:
    sent = b"".join(batches(count, size, "a"))
    found = KEY.findall(sent)
    assert len({key for key, _ in found}) == len(found) >= count
    assert {int(length) for _, length in found} == {size}
    assert len(sent) == sum(len(f"ms {key.decode()} {size} q\r\n") + size + 2 for key, _ in found)


def test_batches_of_another_name_store_other_items() -> None:
    first, second = (set(KEY.findall(b"".join(batches(100, 1, name)))) for name in "ab")
    assert not first & second


@pytest.mark.parametrize(
    ("memory", "count"),
    [(2, 98_304), (10, 98_304), (19, 196_608), (64, 393_216), (72, 393_216), (73, 786_432), (590, 6_291_456)],
)
def test_last_doubling_is_the_largest_that_the_cache_reaches(memory: int, count: int) -> None:
    assert last_doubling(memory) == count


@pytest.mark.parametrize(("memory", "size", "count"), [(2, 1, 21_844), (64, 2**20, 64), (64, 2**27, 1)])
def test_number_of_items_that_fit(memory: int, size: int, count: int) -> None:
    assert items(memory, size) == count
    assert loads.SMALLEST_ITEMS_PER_PAGE * 96 <= loads.MEBIBYTE


def serve(listener: socket.socket, replies: Sequence[bytes]) -> None:
    """Send each reply on a connection of its own; an empty one only closes it."""
    for reply in replies:
        with listener.accept()[0] as connection:
            connection.recv(100)
            connection.sendall(reply)


DENIED = b"ERROR Too many open connections\r\n"


def test_connection_is_tried_again_while_memcached_counts_the_previous_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        replies = [DENIED, b"", b"VERSION 1.6.18\r\n"]
        server = threading.Thread(target=serve, args=(listener, replies), daemon=True)
        server.start()
        with loads.accepted(lambda: Client(listener.getsockname()[1], 60)).socket:
            server.join(60)
        assert not server.is_alive()


def test_memcached_that_denies_every_connection_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loads, "WAIT_SECONDS", -1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve, args=(listener, [DENIED]), daemon=True)
        server.start()
        with pytest.raises(ConnectionError, match="denied every connection"):
            loads.accepted(lambda: Client(listener.getsockname()[1], 60))
        server.join(60)
