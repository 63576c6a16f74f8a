"""Request bodies: which are read, their maximum size, and how many large ones are read at a time."""

import asyncio
import re
from pathlib import Path

import pytest
from aiohttp import web

from memcached_process import connections
from memcached_webhooks import bodies
from memcached_webhooks.bodies import BodyReader, BodyTimeoutError, BodyTooLargeError
from support.streams import Streams, read_to_end, until
from unit.process.serving import Port, post, run_scenario, sized

STATUS = re.compile(rb"HTTP/1\.1 (\d+) ")


class Reader:
    """A handler that reads bodies, and records and returns their lengths."""

    def __init__(self) -> None:
        self.lengths: list[int] = []
        self.reading = 0
        self.started = 0
        self._body_reader = BodyReader()

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        """Read the body of a request."""
        self.reading += 1
        self.started += 1
        try:
            body = await self._body_reader.read(request)
        except BodyTooLargeError:
            return web.Response(status=413)
        except BodyTimeoutError:
            return web.Response(status=408)
        finally:
            self.reading -= 1
        self.lengths.append(len(body))
        return web.Response(text=f"{len(body)}!")


@pytest.fixture(autouse=True)
def frequent_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check timeouts every 20 ms."""
    monkeypatch.setattr(connections, "SWEEP_PERIOD", 0.02)


def chunks(*pieces: bytes) -> bytes:
    """A request with a chunked body."""
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b""))
    return post("Connection: close", "Transfer-Encoding: chunked", body=body)


def complete(size: int, *headers: str) -> bytes:
    """A request with a body of this size."""
    return sized(b" " * size, "Connection: close", *headers)


READ = {
    "nothing": (complete(0), 0),
    "a small one": (complete(9), 9),
    "the largest small one": (complete(2**16), 2**16),
    "a large one": (complete(2**16 + 1), 2**16 + 1),
    "the largest one": (complete(4 * 2**20), 4 * 2**20),
    "a chunked one": (chunks(b"abc", b"de"), 5),
    "many chunks": (chunks(*[b"ab"] * 20_000), 40_000),
    "the largest one, chunked": (chunks(*[b" " * 2**18] * 16), 4 * 2**20),
    "no length and no chunks": (post("Connection: close"), 0),
}


@pytest.mark.parametrize(("data", "length"), READ.values(), ids=READ.keys())
@pytest.mark.parametrize("over_tls", [False, True], ids=["plain", "TLS"])
def test_body_is_read(data: bytes, length: int, over_tls: bool, tmp_path: Path) -> None:
    async def scenario(port: Port) -> None:
        assert (await port.exchange(data)).endswith(f"{length}!".encode())

    run_scenario(scenario, Reader(), tls=tmp_path if over_tls else None)


REJECTED: dict[str, tuple[bytes, list[bytes]]] = {
    "too large": (complete(4 * 2**20 + 1), [b"413"]),
    "too large, chunked": (chunks(*[b" " * 2**18] * 17), [b"413"]),
    "much too large, and not sent": (post(f"Content-Length: {10**15}"), [b"413"]),
    "an invalid chunk": (post("Transfer-Encoding: chunked", body=b"ZZ\r\n"), []),
    "an invalid chunk after a valid one": (post("Transfer-Encoding: chunked", body=b"1\r\na\r\nZZ\r\n"), []),
}


@pytest.mark.parametrize(("data", "codes"), REJECTED.values(), ids=REJECTED.keys())
def test_rejected_body_is_not_read_and_closes_the_connection(
    data: bytes, codes: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_TIMEOUT", 1.0)
    monkeypatch.setattr(connections, "IDLE_TIMEOUT", 1.0)
    reader = Reader()

    async def scenario(port: Port) -> None:
        assert STATUS.findall(await port.exchange(data)) == codes

    run_scenario(scenario, reader)
    assert not reader.lengths


def test_client_may_wait_for_100_continue() -> None:
    async def scenario(port: Port) -> None:
        client = await port.open(post("Content-Length: 1", "Expect: 100-continue", "Connection: close"))
        assert await client[0].readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        client[1].write(b"1")
        found = await read_to_end(client)
        assert STATUS.findall(found) == [b"200"]
        assert found.endswith(b"1!")

    run_scenario(scenario, Reader())


def test_body_may_arrive_in_pieces_after_a_long_head(tmp_path: Path) -> None:
    """Independently of when the pieces arrive and when the handler starts."""

    async def scenario(port: Port) -> None:
        _, writer = client = await port.open()
        data = complete(60_000, f"A: {'a' * 8000}", f"B: {'b' * 7000}")
        for start in range(0, len(data), 3000):
            writer.write(data[start : start + 3000])
            await asyncio.sleep(0)
        assert (await read_to_end(client)).endswith(b"60000!")

    for over_tls in (None, tmp_path):
        run_scenario(scenario, Reader(), tls=over_tls)


HEAD, BODY = post("Content-Length: 1000000", "Connection: close"), b" " * 1_000_000


async def start_large_bodies(port: Port, reader: Reader, count: int) -> list[Streams]:
    """Open connections in order, each with the head of a large body."""
    clients: list[Streams] = []
    for number in range(reader.started + 1, reader.started + count + 1):
        clients.append(await port.open(HEAD))
        await until(lambda number=number: reader.started == number)
    return clients


def test_number_of_large_bodies_is_limited_and_small_ones_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_LARGE_READS", 1)
    monkeypatch.setattr(bodies, "SLOT_TIMEOUT", 60.0)
    reader = Reader()

    async def scenario(port: Port) -> None:
        first, aborted, last = await start_large_bodies(port, reader, 3)
        for _, writer in (first, aborted, last):
            writer.write(BODY[:-1])
        assert (await port.exchange(complete(9))).endswith(b"9!")
        assert reader.reading == 3
        aborted[1].transport.abort()
        for _, writer in (last, first):
            writer.write(b" ")
        assert (await read_to_end(first)).endswith(b"1000000!")
        assert (await read_to_end(last)).endswith(b"1000000!")

    run_scenario(scenario, reader)
    assert reader.lengths == [9, 1_000_000, 1_000_000]


def test_waiting_body_is_not_read_ahead(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bodies, "MAX_LARGE_READS", 1)
    monkeypatch.setattr(bodies, "SLOT_TIMEOUT", 60.0)
    reader = Reader()
    requests: list[web.BaseRequest] = []

    async def record_request(request: web.BaseRequest) -> web.Response:
        requests.append(request)
        return await reader(request)

    async def scenario(port: Port) -> None:
        _, (_, writer) = await start_large_bodies(port, reader, 2)
        writer.write(BODY)
        await until(lambda: requests[1].content.total_bytes)
        await asyncio.sleep(0.3)
        assert requests[1].content.total_bytes < 2**17

    run_scenario(scenario, record_request, tls=tmp_path)


def test_waiting_body_that_times_out_takes_no_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_LARGE_READS", 1)
    monkeypatch.setattr(bodies, "SLOT_TIMEOUT", 60.0)
    monkeypatch.setattr(connections, "REQUEST_TIMEOUT", 0.5)
    reader = Reader()

    async def scenario(port: Port) -> None:
        holder, waiting = await start_large_bodies(port, reader, 2)
        assert await read_to_end(waiting) == b""
        assert await read_to_end(holder) == b""
        monkeypatch.setattr(connections, "REQUEST_TIMEOUT", 60.0)
        assert (await port.exchange(complete(2**17))).endswith(b"131072!")

    run_scenario(scenario, reader)


NEVER_COMPLETE = {
    "nothing": (b"", False),
    "64 KiB, then drops": (b" " * 2**16, True),
    "more than 64 KiB": (b" " * (2**16 + 1000), False),
}


@pytest.mark.parametrize(("start", "drips"), NEVER_COMPLETE.values(), ids=NEVER_COMPLETE.keys())
def test_large_body_is_read_despite_many_that_never_end(
    start: bytes, drips: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long before those requests time out."""
    monkeypatch.setattr(connections, "REQUEST_TIMEOUT", 60.0)
    reader = Reader()

    async def drip(clients: list[Streams]) -> None:
        while drips:
            await asyncio.sleep(0.01)
            for _, writer in clients:
                writer.write(b" ")

    async def scenario(port: Port) -> None:
        clients = await start_large_bodies(port, reader, 12)
        for _, writer in clients:
            writer.write(start)
        dripping = asyncio.create_task(drip(clients))
        async with asyncio.timeout(30):
            for size in (70_000, 200_000):
                assert (await port.exchange(complete(size))).endswith(f"{size}!".encode())
        dripping.cancel()

    run_scenario(scenario, reader)
    assert reader.lengths == [70_000, 200_000]


def test_slow_large_body_is_read_if_no_other_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_LARGE_READS", 1)
    monkeypatch.setattr(bodies, "SLOT_TIMEOUT", 0.1)
    reader = Reader()

    async def scenario(port: Port) -> None:
        (slow,) = await start_large_bodies(port, reader, 1)
        await asyncio.sleep(0.3)
        slow[1].write(BODY)
        assert (await read_to_end(slow)).endswith(b"1000000!")
        slow, waiting = await start_large_bodies(port, reader, 2)
        assert STATUS.findall(await slow[0].readuntil(b"\r\n\r\n")) == [b"408"]
        waiting[1].write(BODY)
        assert (await read_to_end(waiting)).endswith(b"1000000!")

    run_scenario(scenario, reader)


def test_newest_waiter_gets_the_next_slot_and_no_slot_is_lost() -> None:
    order: list[int] = []

    async def take(turns: bodies.LifoSemaphore, number: int, seconds: float) -> None:
        async with turns.acquire():
            order.append(number)
            await asyncio.sleep(seconds)

    async def run() -> None:
        turns = bodies.LifoSemaphore(2)
        tasks = [asyncio.create_task(take(turns, number, 0.05)) for number in range(6)]
        await asyncio.sleep(0)
        tasks[0].cancel()  # holds a slot
        tasks[4].cancel()  # waits for a slot
        await asyncio.sleep(0)
        tasks[5].cancel()  # was just assigned a slot
        await asyncio.gather(*tasks, return_exceptions=True)
        both = asyncio.Barrier(2)

        async def meet() -> None:
            async with turns.acquire():
                await both.wait()

        await asyncio.wait_for(asyncio.gather(meet(), meet()), 5)

    asyncio.run(run())
    assert order == [0, 1, 3, 2]
