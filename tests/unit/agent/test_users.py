"""Users: logins of the client, SIGHUP, and the proof by logins."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from memcached_agent.addresses import Address
from memcached_agent.errors import InvalidError, UnverifiedError
from memcached_agent.memcached.client import MemcachedClient
from memcached_agent.memcached.login import User
from memcached_agent.pod import processes
from memcached_agent.pod.processes import Process
from memcached_agent.reload import users
from memcached_agent.reload.users import Accounts
from support.streams import until

from .memcacheds import LIMIT, FakeMemcached, replies_again


class Users(FakeMemcached):
    """A memcached that requires a login. `known`: the users whom it accepts, as `user password`.

    `denial`: its reply to a `get` before the login.
    """

    denial = b"CLIENT_ERROR unauthenticated\r\n"

    def __init__(self, *known: str) -> None:
        super().__init__()
        self.known = set(known)
        self.answer = self._answer

    def _answer(self, line: str) -> bytes | None:
        if line.startswith("get "):
            return self.denial
        if line.startswith("set auth "):
            return b""
        if " " in line and line not in self.replies:
            return b"STORED\r\n" if line in self.known else b"CLIENT_ERROR authentication failure\r\n"
        return None


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times for tests."""
    monkeypatch.setattr(users, "RELOAD_TIME", 0.0)
    monkeypatch.setattr(users, "PROOF_TIME", 0.05)
    monkeypatch.setattr(users, "PROOF_PAUSE", 0.01)


def run(memcached: Users, scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario with a memcached."""

    async def serve() -> None:
        async with memcached.running():
            await scenario()

    asyncio.run(asyncio.wait_for(serve(), 60))


# Logins of the client.


def test_client_logs_in_with_the_first_accepted_user() -> None:
    memcached = Users("u old")

    async def scenario() -> None:
        users = [User(b"u", b"new"), User(b"u", b"old"), User(b"v", b"x")]
        client = MemcachedClient(Address("127.0.0.1", memcached.port), lambda: users)
        task = asyncio.create_task(client.run())
        await replies_again(client)
        login = [each for each in memcached.commands if not each.startswith("get ")][:5]
        assert login == ["set auth 0 0 5", "u new", "set auth 0 0 5", "u old", "version"]
        assert (memcached.connections, client.connected) == (1, 1)
        task.cancel()

    run(memcached, scenario)


def test_refused_login_is_a_problem_without_the_password() -> None:
    memcached = Users()

    async def scenario() -> None:
        client = MemcachedClient(Address("127.0.0.1", memcached.port), lambda: [User(b"alice", b"secret")])
        task = asyncio.create_task(client.run())
        await until(lambda: client.errors["rejected"] > 1)
        problem = await client.problem()
        assert "rejects the login: it accepts none of the users in the file" in problem
        assert "secret" not in problem
        assert client.connected is None
        memcached.known = {"alice secret"}
        await replies_again(client)
        assert client.connected == 1
        task.cancel()

    run(memcached, scenario)


def test_invalid_reply_to_a_login_is_not_repeated() -> None:
    memcached = Users()
    replies = {"get": memcached.denial, "set": b""}
    memcached.answer = lambda line: replies.get(line[:3], b"VALUE " + line.encode() + b"\r\n")

    async def scenario() -> None:
        client = MemcachedClient(Address("127.0.0.1", memcached.port), lambda: [User(b"alice", b"secret")])
        task = asyncio.create_task(client.run())
        await until(lambda: client.errors["protocol"])
        assert "sent an invalid reply to a login" in await client.problem()
        task.cancel()

    run(memcached, scenario)


@pytest.mark.parametrize("reply", [b"END\r\n", b"VALUE memcached-agent 0 1\r\nx\r\nEND\r\n"])
def test_memcached_that_requires_no_login_is_not_given_the_password(reply: bytes) -> None:
    """It would store the login as the item `auth`."""
    memcached = Users("alice secret")
    memcached.denial = reply

    async def scenario() -> None:
        client = MemcachedClient(Address("127.0.0.1", memcached.port), lambda: [User(b"alice", b"secret")])
        task = asyncio.create_task(client.run())
        await until(lambda: client.errors["rejected"] > 1)
        assert "requires no login: it runs without its file of users" in await client.problem()
        assert set(memcached.commands) == {"get memcached-agent"}
        task.cancel()

    run(memcached, scenario)


# Reloads.


def prepared(tmp_path: Path, memcached: Users, monkeypatch: pytest.MonkeyPatch, *reloaded: str) -> Accounts:
    """The users of a file; upon SIGHUP, memcached accepts `reloaded`."""

    def found(*_: str) -> Process:
        return Process(1, 1)

    def signalled(*_: object) -> None:
        memcached.known = set(reloaded)

    monkeypatch.setattr(processes, "find", found)
    monkeypatch.setattr(processes, "send", signalled)
    return Accounts(str(tmp_path / "users"), Address("127.0.0.1", memcached.port))


def test_users_are_verified_by_logins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memcached = Users("u old")
    (tmp_path / "users").write_bytes(b"u:new\nv:x\n")

    async def scenario() -> None:
        source = prepared(tmp_path, memcached, monkeypatch, "u new", "v x")
        await source.apply(source.check(source.read()))
        assert {each for each in memcached.commands if not each.startswith(("get", "set"))} == {"u new", "v x"}
        assert all(each.is_closing() for each in memcached.writers) or len(memcached.writers) == 2

    run(memcached, scenario)


def test_user_that_is_not_accepted_is_reported_by_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memcached = Users()
    (tmp_path / "users").write_bytes(b"u:new\nalice:secret")

    async def scenario() -> None:
        source = prepared(tmp_path, memcached, monkeypatch, "u new", "alice secre")
        with pytest.raises(InvalidError, match=r"rejects the user in line 2 of .*/users; end the file with a newline"):
            await source.apply(source.read())
        (tmp_path / "users").write_bytes(b"u:new\nalice:secret\n")
        with pytest.raises(InvalidError, match=r"rejects the user in line 2 of .*; the agent reloads it again"):
            await source.apply(source.read())

    run(memcached, scenario)


def test_removed_user_must_be_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memcached = Users()
    (tmp_path / "users").write_bytes(b"u:new\nu:old\n")

    async def scenario() -> None:
        source = prepared(tmp_path, memcached, monkeypatch, "u new", "u old")
        await source.apply(source.read())
        (tmp_path / "users").write_bytes(b"u:new\n")
        with pytest.raises(InvalidError, match="still accepts a user who is no longer in"):
            await source.apply(source.read())
        assert source.candidates() == (User(b"u", b"new"), User(b"u", b"old"))

    run(memcached, scenario)


def test_connection_limit_does_not_prevent_the_reload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memcached = Users("u old")
    memcached.refuses = LIMIT
    (tmp_path / "users").write_bytes(b"u:new\n")

    async def scenario() -> None:
        source = prepared(tmp_path, memcached, monkeypatch, "u new")
        with pytest.raises(UnverifiedError, match="connection limit"):
            await source.apply(source.read())
        assert memcached.known == {"u new"}
        memcached.refuses = b""
        await source.apply(source.read())

    run(memcached, scenario)


def test_last_users_are_candidates_while_the_file_is_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memcached = Users()
    (tmp_path / "users").write_bytes(b"u:good\n")

    async def scenario() -> None:
        source = prepared(tmp_path, memcached, monkeypatch, "u good")
        assert source.candidates() == (User(b"u", b"good"),)
        await source.apply(source.read())
        (tmp_path / "users").write_bytes(b"bad\n")
        assert source.candidates() == (User(b"u", b"good"),)

    run(memcached, scenario)
