"""Bodies of requests, byte by byte: what is read, what is too large, and how many large ones at a time."""

import asyncio
import re
from pathlib import Path

import pytest
from aiohttp import web

from memcached_process import connections
from memcached_webhooks import bodies
from memcached_webhooks.bodies import BodyReader, BodyTimeoutError, BodyTooLargeError
from unit.process.serving import Line, Port, post, rest, run_scenario, sized, until

STATUS = re.compile(rb"HTTP/1\.1 (\d+) ")


class Reader:
    """A handler that reads bodies, answers with their length, and remembers it."""

    def __init__(self) -> None:
        self.lengths: list[int] = []
        self.reading = 0
        self.started = 0
        self._body_reader = BodyReader()

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        """Read one."""
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
def sweeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are checked often."""
    monkeypatch.setattr(connections, "SWEEP_PERIOD", 0.02)


def chunks(*pieces: bytes) -> bytes:
    """A request with its body in chunks."""
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b""))
    return post("Connection: close", "Transfer-Encoding: chunked", body=body)


def whole(size: int, *headers: str) -> bytes:
    """A request with a body of so many bytes."""
    return sized(b" " * size, "Connection: close", *headers)


READ = {
    "nothing": (whole(0), 0),
    "a small one": (whole(9), 9),
    "one that just is small": (whole(2**16), 2**16),
    "a large one": (whole(2**16 + 1), 2**16 + 1),
    "the largest": (whole(4 * 2**20), 4 * 2**20),
    "chunks": (chunks(b"abc", b"de"), 5),
    "many chunks": (chunks(*[b"ab"] * 20_000), 40_000),
    "the largest in chunks": (chunks(*[b" " * 2**18] * 16), 4 * 2**20),
    "no length and no chunks": (post("Connection: close"), 0),
}


@pytest.mark.parametrize(("data", "length"), READ.values(), ids=READ.keys())
@pytest.mark.parametrize("over_tls", [False, True], ids=["plain", "TLS"])
def test_a_body_is_read(data: bytes, length: int, over_tls: bool, tmp_path: Path) -> None:
    async def scenario(port: Port) -> None:
        assert (await port.answers(data)).endswith(f"{length}!".encode())

    run_scenario(scenario, Reader(), tls=tmp_path if over_tls else None)


REFUSED: dict[str, tuple[bytes, list[bytes]]] = {
    "too large": (whole(4 * 2**20 + 1), [b"413"]),
    "too large in chunks": (chunks(*[b" " * 2**18] * 17), [b"413"]),
    "much too large, and not sent": (post(f"Content-Length: {10**15}"), [b"413"]),
    "no chunk": (post("Transfer-Encoding: chunked", body=b"ZZ\r\n"), []),
    "no chunk after a good one": (post("Transfer-Encoding: chunked", body=b"1\r\na\r\nZZ\r\n"), []),
}


@pytest.mark.parametrize(("data", "codes"), REFUSED.values(), ids=REFUSED.keys())
def test_another_body_is_not_read_and_ends_the_connection(
    data: bytes, codes: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_TIMEOUT", 1.0)
    monkeypatch.setattr(connections, "IDLE_TIMEOUT", 1.0)
    reader = Reader()

    async def scenario(port: Port) -> None:
        assert STATUS.findall(await port.answers(data)) == codes

    run_scenario(scenario, reader)
    assert not reader.lengths


def test_a_client_may_wait_before_it_sends_the_body() -> None:
    async def scenario(port: Port) -> None:
        line = await port.open(post("Content-Length: 1", "Expect: 100-continue", "Connection: close"))
        assert await line[0].readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        line[1].write(b"1")
        found = await rest(line)
        assert STATUS.findall(found) == [b"200"]
        assert found.endswith(b"1!")

    run_scenario(scenario, Reader())


def test_a_body_may_follow_a_long_head_piece_by_piece(tmp_path: Path) -> None:
    """However soon the pieces come, and however late the handler begins."""

    async def scenario(port: Port) -> None:
        _, writer = line = await port.open()
        data = whole(60_000, f"A: {'a' * 8000}", f"B: {'b' * 7000}")
        for start in range(0, len(data), 3000):
            writer.write(data[start : start + 3000])
            await asyncio.sleep(0)
        assert (await rest(line)).endswith(b"60000!")

    for over_tls in (None, tmp_path):
        run_scenario(scenario, Reader(), tls=over_tls)


HEAD, BODY = post("Content-Length: 1000000", "Connection: close"), b" " * 1_000_000


async def begun(port: Port, reader: Reader, count: int) -> list[Line]:
    """So many large bodies are on their way, in this order."""
    lines: list[Line] = []
    for number in range(reader.started + 1, reader.started + count + 1):
        lines.append(await port.open(HEAD))
        await until(lambda number=number: reader.started == number)
    return lines


def test_few_large_bodies_are_read_at_once_and_small_ones_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_LARGE_READS", 1)
    monkeypatch.setattr(bodies, "SLOT_TIMEOUT", 60.0)
    reader = Reader()

    async def scenario(port: Port) -> None:
        first, gone, last = await begun(port, reader, 3)
        for _, writer in (first, gone, last):
            writer.write(BODY[:-1])
        assert (await port.answers(whole(9))).endswith(b"9!")
        assert reader.reading == 3
        gone[1].transport.abort()
        for _, writer in (last, first):
            writer.write(b" ")
        assert (await rest(first)).endswith(b"1000000!")
        assert (await rest(last)).endswith(b"1000000!")

    run_scenario(scenario, reader)
    assert reader.lengths == [9, 1_000_000, 1_000_000]


def test_of_a_body_that_waits_little_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bodies, "MAX_LARGE_READS", 1)
    monkeypatch.setattr(bodies, "SLOT_TIMEOUT", 60.0)
    reader = Reader()
    requests: list[web.BaseRequest] = []

    async def record_errors(request: web.BaseRequest) -> web.Response:
        requests.append(request)
        return await reader(request)

    async def scenario(port: Port) -> None:
        _, (_, writer) = await begun(port, reader, 2)
        writer.write(BODY)
        await until(lambda: requests[1].content.total_bytes)
        await asyncio.sleep(0.3)
        assert requests[1].content.total_bytes < 2**17

    run_scenario(scenario, record_errors, tls=tmp_path)


def test_a_body_that_waits_too_long_is_cut_and_takes_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_LARGE_READS", 1)
    monkeypatch.setattr(bodies, "SLOT_TIMEOUT", 60.0)
    monkeypatch.setattr(connections, "REQUEST_TIMEOUT", 0.5)
    reader = Reader()

    async def scenario(port: Port) -> None:
        holder, waiting = await begun(port, reader, 2)
        assert await rest(waiting) == b""
        assert await rest(holder) == b""
        monkeypatch.setattr(connections, "REQUEST_TIMEOUT", 60.0)
        assert (await port.answers(whole(2**17))).endswith(b"131072!")

    run_scenario(scenario, reader)


NEVER_WHOLE = {
    "nothing of it": b"",
    "64 KiB": b" " * 2**16,
    "more than 64 KiB": b" " * (2**16 + 1000),
}


@pytest.mark.parametrize("begin", NEVER_WHOLE.values(), ids=NEVER_WHOLE.keys())
@pytest.mark.parametrize("drips", [False, True], ids=["stalled", "dripping"])
def test_a_large_body_is_read_beside_many_that_never_end(
    begin: bytes, drips: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Far sooner than their time for a request ends."""
    monkeypatch.setattr(connections, "REQUEST_TIMEOUT", 60.0)
    reader = Reader()

    async def drip(lines: list[Line]) -> None:
        while drips:
            await asyncio.sleep(0.01)
            for _, writer in lines:
                writer.write(b" ")

    async def scenario(port: Port) -> None:
        lines = await begun(port, reader, 12)
        for _, writer in lines:
            writer.write(begin)
        dripping = asyncio.create_task(drip(lines))
        async with asyncio.timeout(30):
            for size in (70_000, 200_000):
                assert (await port.answers(whole(size))).endswith(f"{size}!".encode())
        dripping.cancel()

    run_scenario(scenario, reader)
    assert reader.lengths == [70_000, 200_000]


def test_a_large_body_may_take_its_time_while_no_other_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_LARGE_READS", 1)
    monkeypatch.setattr(bodies, "SLOT_TIMEOUT", 0.1)
    reader = Reader()

    async def scenario(port: Port) -> None:
        (slow,) = await begun(port, reader, 1)
        await asyncio.sleep(0.3)
        slow[1].write(BODY)
        assert (await rest(slow)).endswith(b"1000000!")
        slow, waiting = await begun(port, reader, 2)
        assert STATUS.findall(await slow[0].readuntil(b"\r\n\r\n")) == [b"408"]
        waiting[1].write(BODY)
        assert (await rest(waiting)).endswith(b"1000000!")

    run_scenario(scenario, reader)


def test_turns_go_to_the_newest_and_are_not_lost() -> None:
    order: list[int] = []

    async def take(turns: bodies.LifoSemaphore, number: int, seconds: float) -> None:
        async with turns.acquire():
            order.append(number)
            await asyncio.sleep(seconds)

    async def run() -> None:
        turns = bodies.LifoSemaphore(2)
        tasks = [asyncio.create_task(take(turns, number, 0.05)) for number in range(6)]
        await asyncio.sleep(0)
        tasks[0].cancel()  # holds a turn
        tasks[4].cancel()  # waits for one
        await asyncio.sleep(0)
        tasks[5].cancel()  # has been given one this moment
        await asyncio.gather(*tasks, return_exceptions=True)
        both = asyncio.Barrier(2)

        async def meet() -> None:
            async with turns.acquire():
                await both.wait()

        await asyncio.wait_for(asyncio.gather(meet(), meet()), 5)

    asyncio.run(run())
    assert order == [0, 1, 3, 2]
