"""The client: faults of a memcached, one connection, and new connections after errors."""

import asyncio
import logging
import re

import pytest

from memcached_agent.addresses import Address
from memcached_agent.memcached import client as client_module
from memcached_agent.memcached import connection
from memcached_agent.memcached.client import BACKENDS, ROUTES, MemcachedClient
from memcached_agent.memcached.errors import MemcachedError, Reason
from memcached_agent.metrics import proxy
from support.streams import until

from .memcacheds import CLOSE, HANG, LIMIT, FakeMemcached, replies_again, with_client
from .samples import COMMANDS, reference, replies


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delays for tests. The timeouts are long, for a busy machine, except where memcached does not reply."""
    for module, name in (
        (connection, "REPLY_TIMEOUT"),
        (connection, "CONNECT_TIMEOUT"),
        (client_module, "TOTAL_TIMEOUT"),
    ):
        monkeypatch.setattr(module, name, 30.0)
    monkeypatch.setattr(client_module, "MIN_DELAY", 0.01)
    monkeypatch.setattr(client_module, "MAX_DELAY", 0.05)


def counted(client: MemcachedClient) -> dict[Reason, int]:
    """The reasons that were counted."""
    return {reason: count for reason, count in client.errors.items() if count}


STATS = replies()["stats"]
FAULTS: dict[str, tuple[bytes | None, Reason, str]] = {
    "hangs": (HANG, "timeout", "did not reply to `stats` within 0.3 s"),
    "half a reply": (STATS[:-5], "timeout", "did not reply to `stats` within 0.3 s"),
    "a line that ends with END": (b"STAT a END\r\n", "timeout", "did not reply to `stats` within 0.3 s"),
    "a huge reply": (b"STAT a " + b"x" * 2**20, "protocol", "sent more than 262144 bytes as one reply"),
    "closed": (CLOSE, "closed", "closed the connection"),
    "error": (b"ERROR\r\n", "rejected", "replied with the error 'ERROR'"),
    "client error": (b"CLIENT_ERROR unauthenticated\r\n", "rejected", "the error 'CLIENT_ERROR unauthenticated'"),
    "server error": (b"SERVER_ERROR x\r\n", "rejected", "replied with the error 'SERVER_ERROR x'"),
    "limit": (LIMIT, "limit", "has reached its connection limit and refuses new connections"),
    "another protocol": (b"HTTP/1.1 400 Bad Request\r\nEND\r\n", "protocol", "sent invalid statistics: invalid line"),
    "two replies": (STATS + b"END\r\n", "protocol", "sent invalid statistics: invalid line 'END'"),
    "bytes that are not ASCII": (b"\xff\x00\r\nEND\r\n", "protocol", "sent invalid statistics: invalid line"),
}


@pytest.mark.parametrize(("reply", "reason", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_fault_is_reported_and_the_connection_replaced(
    reply: bytes | None, reason: Reason, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        await replies_again(client)
        memcached.replies["stats"] = reply
        with monkeypatch.context() as patched:
            if reason == "timeout":
                patched.setattr(connection, "REPLY_TIMEOUT", 0.3)
            with pytest.raises(MemcachedError, match=f"^memcached at 127.0.0.1:{memcached.port} ") as raised:
                await client.statistics()
        assert (raised.value.reason, counted(client)) == (reason, {reason: 1})
        assert message in str(raised.value)
        assert len(str(raised.value)) < 200
        assert await client.problem() == str(raised.value)
        memcached.replies["stats"] = STATS
        await replies_again(client)
        assert await client.statistics() == reference()
        assert (memcached.connections, counted(client)) == (2, {reason: 1})

    with_client(scenario)


PROXY = b"STAT proxy_backend_total 4\r\n"


@pytest.mark.parametrize(
    ("general", "backends", "expected"),
    [
        (b"", b"END\r\n", None),
        (PROXY, b"END\r\n", 0),
        (PROXY, b"STAT bad_sessions-1 2\r\nSTAT bad_sessions-2 1\r\nEND\r\n", 2),
        *((PROXY, reply, None) for reply in (b"ERROR\r\n", b"CLIENT_ERROR no stats\r\n", b"SERVER_ERROR x\r\n")),
    ],
)
def test_servers_that_a_proxy_cannot_reach(general: bytes, backends: bytes, expected: int | None) -> None:
    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        memcached.replies |= {"stats": general + STATS, BACKENDS: backends, ROUTES: b"ERROR\r\n"}
        await replies_again(client)
        for _ in range(2):  # over the same connection
            found = [each.samples[0][1] for each in proxy.families(await client.statistics()) if each.samples]
            assert found == ([] if expected is None else [expected])
        assert (BACKENDS in memcached.commands) == bool(general)
        assert (memcached.connections, counted(client)) == (1, {})

    with_client(scenario)


SCALE = b"STAT cmd_mg 1\r\nSTAT user_scale_new 5\r\nSTAT user_scale_old 7\r\nSTAT user_scale_miss 0\r\n"


@pytest.mark.parametrize(
    ("counters", "expected"),
    [
        (SCALE + b"STAT user_scale_refused 2\r\nEND\r\n", {"hits": [5, 7], "misses": [0], "refused": [2]}),
        (b"STAT cmd_mg 1\r\nSTAT user_scale_newer 5\r\nSTAT user_other 5\r\nEND\r\n", {}),
        (b"ERROR\r\n", {}),
    ],
    ids=["while slots change", "otherwise", "without the command"],
)
def test_counters_of_a_change_of_the_number_of_slots(counters: bytes, expected: dict[str, list[float]]) -> None:
    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        memcached.replies |= {"stats": PROXY + STATS, BACKENDS: b"END\r\n", ROUTES: counters}
        await replies_again(client)
        _, *families = proxy.families(await client.statistics())
        found = {each.metric.name: [value for _, value in each.samples] for each in families if each.samples}
        assert found == {f"memcached_agent_proxy_scaling_{name}_total": values for name, values in expected.items()}
        labels = [labels for labels, _ in families[0].samples]
        assert labels == ([(("place", "new"),), (("place", "old"),)] if expected else [])

    with_client(scenario)


def test_connection_without_other_commands_does_not_become_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "KEEP_ALIVE", 0.02)
    monkeypatch.setattr(client_module, "RECENT", 0.0)

    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        await until(lambda: memcached.commands.count("version") >= 5)
        assert (memcached.connections, client.connected, set(memcached.commands)) == (1, 1, {"version"})
        memcached.close_all()
        await until(lambda: memcached.connections == 2)

    with_client(scenario)


def test_late_reply_is_not_read_as_that_of_the_next_command() -> None:
    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        await replies_again(client)
        memcached.replies["stats slabs"] = replies()["stats slabs"] + b"STAT late 1\r\nEND\r\n"
        with pytest.raises(MemcachedError, match="sent invalid statistics"):
            await client.statistics()
        await replies_again(client)
        memcached.replies["stats slabs"] = replies()["stats slabs"]
        assert await client.statistics() == reference()
        memcached.writers[-1].write(b"STAT late 1\r\nEND\r\n")
        await asyncio.sleep(0.1)
        with pytest.raises(MemcachedError, match=r"sent unexpected bytes: 'STAT late 1\\r\\nEND'"):
            await client.statistics()
        assert memcached.commands.count("stats") == 2

    with_client(scenario)


def test_time_of_all_commands_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        await replies_again(client)
        monkeypatch.setattr(client_module, "TOTAL_TIMEOUT", 0.3)
        memcached.delay = 0.2
        with pytest.raises(MemcachedError, match=r"did not send its statistics within 0.3 s") as raised:
            await client.statistics()
        assert (raised.value.reason, counted(client)) == ("timeout", {"timeout": 1})

    with_client(scenario)


def test_memory_for_replies_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    received = connection.MemcachedConnection.data_received

    def record(self: connection.MemcachedConnection, data: bytes) -> None:
        received(self, data)
        sizes.append(len(self._received))  # pyright: ignore[reportPrivateUsage]

    monkeypatch.setattr(connection.MemcachedConnection, "data_received", record)

    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        await replies_again(client)
        memcached.replies["stats"] = b"STAT a " + b"x" * 2**22
        with pytest.raises(MemcachedError, match="sent more than"):
            await client.statistics()
        assert max(sizes) <= connection.MAX_REPLY

    with_client(scenario)


@pytest.mark.parametrize("greeting", [LIMIT, LIMIT[:-2]])
def test_connection_limit_has_its_own_reason(greeting: bytes) -> None:
    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        await until(lambda: client.errors["limit"] > 2)
        assert counted(client).keys() == {"limit"}
        assert await client.problem() == (
            f"memcached at 127.0.0.1:{memcached.port} has reached its connection limit and refuses new connections"
        )
        with pytest.raises(MemcachedError, match="connection limit"):
            await client.statistics()
        memcached.refuses = b""
        await replies_again(client)

    with_client(scenario, FakeMemcached(refuses=greeting))


def test_server_that_is_not_memcached_is_not_used() -> None:
    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        memcached.replies["version"] = b"+OK\r\n"
        await until(lambda: client.errors["protocol"] > 1)
        assert "sent an invalid reply to `version`" in await client.problem()
        assert set(memcached.commands) == {"version"}

    with_client(scenario)


def test_client_connects_when_memcached_starts() -> None:
    async def run() -> None:
        memcached = FakeMemcached()
        client = MemcachedClient(Address("127.0.0.1", memcached.port))
        task = asyncio.create_task(client.run())
        assert "is not connected yet" in await client.problem()
        await until(lambda: client.errors["refused"] > 1)
        assert "nothing listens on this port" in await client.problem()
        async with memcached.running():
            await replies_again(client)
            assert await client.statistics() == reference()
        await until(lambda: client.errors["closed"])
        task.cancel()

    asyncio.run(run())


def test_unreachable_address_is_reported() -> None:
    async def run() -> None:
        client = MemcachedClient(Address("255.255.255.255", 1))
        task = asyncio.create_task(client.run())
        await until(lambda: client.errors["unreachable"])
        assert "memcached at 255.255.255.255:1 cannot be reached: " in await client.problem()
        task.cancel()

    asyncio.run(run())


def test_connection_that_is_not_accepted_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT", 0.3)

    async def run() -> None:
        async def hang(*_: object, **__: object) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", hang)
        client = MemcachedClient(Address("127.0.0.1", 1))
        task = asyncio.create_task(client.run())
        await until(lambda: client.errors["timeout"])
        assert "did not accept a connection within 0.3 s" in await client.problem()
        task.cancel()

    asyncio.run(run())


def test_delays_double_up_to_5_s_with_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        ranges.append((low, high))
        return 0.0

    monkeypatch.undo()
    monkeypatch.setattr("random.uniform", uniform)

    async def run() -> None:
        task = asyncio.create_task(MemcachedClient(Address("127.0.0.1", FakeMemcached().port)).run())
        await until(lambda: len(ranges) > 8)
        task.cancel()

    asyncio.run(run())
    assert ranges[:8] == [(0.05, 0.1), (0.1, 0.2), (0.2, 0.4), (0.4, 0.8), (0.8, 1.6), (1.6, 3.2), (2.5, 5), (2.5, 5)]


def test_delay_is_short_again_after_a_lasting_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges: list[float] = []

    def uniform(_: float, high: float) -> float:
        ranges.append(high)
        return 0.0

    monkeypatch.setattr("random.uniform", uniform)

    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        await until(lambda: max(ranges, default=0.0) == 0.05)
        memcached.refuses = b""
        await replies_again(client)
        await asyncio.sleep(0.2)
        memcached.writers[-1].close()
        await until(lambda: client.errors["closed"])
        await replies_again(client)
        assert ranges[-1] == 0.01
        assert max(ranges) == 0.05

    with_client(scenario, FakeMemcached(refuses=LIMIT))


def test_sequences_of_commands_do_not_overlap() -> None:
    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        await replies_again(client)
        memcached.commands.clear()
        memcached.delay = 0.01
        found = await asyncio.gather(*(client.statistics() for _ in range(3)))
        assert found == [reference()] * 3
        assert memcached.commands == list(COMMANDS) * 3
        assert (memcached.connections, counted(client)) == (1, {})

    with_client(scenario)


def test_cancelled_sequence_closes_the_connection() -> None:
    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        await replies_again(client)
        memcached.delay = 0.1
        task = asyncio.create_task(client.statistics())
        await until(lambda: "stats" in memcached.commands)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert counted(client) == {"closed": 1}
        await replies_again(client)
        assert await client.statistics() == reference()
        assert memcached.connections == 2

    with_client(scenario)


def test_check_sends_a_command_only_without_a_recent_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        await replies_again(client)
        loop = asyncio.get_running_loop()
        later = loop.time() + client_module.RECENT
        await client.statistics()
        before = len(memcached.commands)
        with monkeypatch.context() as patched:
            patched.setattr(loop, "time", lambda: later)
            assert await client.problem() == "", "the statistics are a later reply than that to `version`"
        assert len(memcached.commands) == before
        monkeypatch.setattr(client_module, "RECENT", 0.0)
        assert await client.problem() == ""
        assert memcached.commands[before:] == ["version"]
        memcached.replies["version"] = HANG
        monkeypatch.setattr(connection, "REPLY_TIMEOUT", 0.3)
        assert "did not reply to `version` within 0.3 s" in await client.problem()

    with_client(scenario)


def test_log_has_one_line_for_each_new_problem(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        await until(lambda: client.errors["limit"] > 5)
        memcached.refuses = b""
        await replies_again(client)
        memcached.replies["stats"] = b"ERROR " + b"x" * 1000 + b"\x1b\n\r\n"
        with pytest.raises(MemcachedError):
            await client.statistics()
        memcached.replies["stats"] = STATS
        await replies_again(client)

    with_client(scenario, FakeMemcached(refuses=LIMIT))
    words = [re.sub(r".*(has reached|replied|connected|closed) .*", r"\1", each) for each in caplog.messages]
    assert words[:4] == ["has reached", "connected", "replied", "connected"]
    assert all(len(each) < 200 and each.isprintable() for each in caplog.messages)
