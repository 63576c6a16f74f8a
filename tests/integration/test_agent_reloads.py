"""The agent makes real memcached processes reload certificates and users. Files change as in a mounted Secret."""

import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from cluster.public import releases
from integration import reloading
from integration.reloading import Cache, Machine, machine
from support.memcacheds import RELEASES
from support.pki import CA, Pair, rsa_key
from unit.agent.processes import running
from unit.agent.samples import samples, value

FREE_CONNECTIONS = 40
NEWEST = pytest.mark.parametrize("node", releases.VERSIONS[-1:], indirect=True)


@pytest.fixture(params=RELEASES)
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    """A machine with a release of memcached."""
    return machine(request.param, tmp_path)


def identity(directory: Path, pair: Pair) -> Path:
    """A file with a certificate of a client."""
    path = directory / f"{pair.serial}.pem"
    path.write_bytes(pair.cert + pair.key)
    return path


def files(pair: Pair, **others: bytes) -> dict[str, bytes]:
    """The files of a Secret of the type kubernetes.io/tls."""
    return {
        "tls.crt": pair.cert,
        "tls.key": pair.key,
        **{name.replace("_", "-") + ".crt": each for name, each in others.items()},
    }


@pytest.mark.parametrize("mode", reloading.MODES)
def test_renewed_certificate_is_served_and_items_stay(node: Machine, tmp_path: Path, mode: str) -> None:
    authority, clients = CA(), CA("clients")
    certificate = identity(tmp_path, clients.issue(["a client"], client=True))
    first, second = authority.issue(days=20), CA("other").issue(days=40)
    node.tls.write(files(first, ca=authority.pem, client_ca=clients.pem))
    with reloading.cache(node, tls=mode) as live:
        reloading.store(live.client)
        live.wait_served(first, certificate)
        node.tls.write(files(second, client_ca=clients.pem))
        live.wait_served(second, certificate)
        assert live.served(certificate)[1].startswith(b"VERSION")
        reloading.check_kept(live.client)


def test_removed_client_ca_is_trusted_until_memcached_restarts(node: Machine, tmp_path: Path) -> None:
    """What docs/monitoring.md says about memcached."""
    old, new, pair = CA("old"), CA("new"), CA().issue()
    before, after = (identity(tmp_path, each.issue(["a client"], client=True)) for each in (old, new))
    node.tls.write(files(pair, client_ca=old.pem))
    with reloading.cache(node, tls="Require") as live:
        live.wait_served(pair, before)
        assert not _is_served(live, after)
        node.tls.write(files(pair, client_ca=new.pem))
        reloading.wait_until(lambda: _is_served(live, after))
        assert _is_served(live, before)
    with reloading.cache(node, tls="Require") as live:
        assert _is_served(live, after)
        assert not _is_served(live, before)


def _is_served(live: Cache, client: Path) -> bool:
    try:
        return live.served(client)[1].startswith(b"VERSION")
    except OSError:
        return False


GOOD, OTHER = CA("good"), CA("other")
NEW = GOOD.issue()


@NEWEST
def test_bad_certificate_is_not_loaded(node: Machine) -> None:
    good = GOOD.issue(days=30)
    node.tls.write(files(good, ca=GOOD.pem))
    with reloading.cache(node) as live:
        live.wait_served(good)
        for content, reason in (
            (files(NEW) | {"tls.key": GOOD.issue().key}, "tls.key is not the key of "),
            ({}, "tls.crt is missing; add it to the Secret"),
        ):
            node.tls.write(content)
            live.agent.wait_for(503, reason, seconds=reloading.IN_TIME)
            assert live.agent.get("/healthz")[1].startswith(f"certificate: {node.tls.directory}")
            assert value(live.agent.get()[1], reloading.SUCCESSFUL, source="certificate") == 0
            assert live.served()[0] == good.der
        node.tls.write(files(NEW, ca=GOOD.pem))
        live.wait_served(NEW)
        assert live.agent.get("/livez")[0] == 200


@NEWEST
def test_change_of_the_keys_algorithm_that_has_no_effect_is_reported(node: Machine) -> None:
    """memcached has a place for each algorithm, and prefers ECDSA."""
    ecdsa, rsa = GOOD.issue(days=20), CA("rsa", new_key=rsa_key).issue(days=40)
    node.tls.write(files(rsa))
    with reloading.cache(node) as live:
        node.tls.write(files(ecdsa))
        live.wait_served(ecdsa)
        node.tls.write(files(rsa))
        live.agent.wait_for(503, "set spec.rollout.restartedAt, which replaces the pods", seconds=reloading.IN_TIME)
        assert value(live.agent.get()[1], reloading.SUCCESSFUL, source="certificate") == 0
        assert live.served()[0] == ecdsa.der


@NEWEST
def test_certificate_is_loaded_at_the_connection_limit_and_verified_later(node: Machine) -> None:
    first, second = GOOD.issue(days=20), GOOD.issue(days=40)
    node.tls.write(files(first))
    with reloading.cache(node, options=("-c", "30")) as live, ExitStack() as stack:
        live.wait_served(first)
        _fill(live, stack)
        node.tls.write(files(second))
        live.agent.wait_for(
            503, "certificate: not verified yet; trying again: memcached has reached its connection limit"
        )
        text = live.agent.get()[1]
        assert value(text, reloading.SUCCESSFUL, source="certificate") == 0
        assert value(text, reloading.EXPIRATION) == first.not_after.timestamp()
        stack.close()
        live.agent.wait_for(200, f"{reloading.EXPIRATION} {second.not_after.timestamp():.0f}", "/metrics")
        live.wait_served(second)


def _fill(live: Cache, stack: ExitStack) -> None:
    """Open connections until memcached refuses one."""
    for _ in range(FREE_CONNECTIONS):
        client = live.server.connect()
        stack.callback(client.close)
        try:
            reply = client.request(b"version\r\n")
        except ConnectionError:
            return
        if b"Too many" in reply:
            return
    raise AssertionError("memcached accepts more connections than its limit")


# Users.


def test_password_rotates_without_losing_connections(node: Machine) -> None:
    node.auth.write({"users": b"u:old\n"})
    with reloading.cache(node, tls=None, auth=True) as live:
        assert reloading.log_in(live.client, b"u old")
        reloading.store(live.client)
        node.auth.write({"users": b"u:new\nu:old\n"})
        reloading.wait_until(lambda: live.accepts(b"u new"))
        assert live.accepts(b"u old")
        node.auth.write({"users": b"u:new\n"})
        reloading.wait_until(lambda: not live.accepts(b"u old"))
        assert live.accepts(b"u new")
        reloading.check_kept(live.client)
        text = live.agent.get()[1]
        assert value(text, "memcached_up") == 1
        assert value(text, reloading.SUCCESSFUL, source="users") == 1
        errors = [
            count for (name, _), count in samples(text).items() if name == "memcached_agent_connection_errors_total"
        ]
        assert sum(errors) == 0, "the agent kept its connection"


def test_bad_users_are_not_loaded(node: Machine) -> None:
    node.auth.write({"users": b"u:old\n"})
    with reloading.cache(node, tls=None, auth=True) as live:
        for content, reason in (({"users": b"u\n"}, ""), ({}, " is missing")):
            node.auth.write(content)
            live.agent.wait_for(503, f"users: {node.users}{reason}", seconds=reloading.IN_TIME)
            assert live.accepts(b"u old")
        node.auth.write({"users": b"u:new\n"})
        reloading.wait_until(lambda: live.accepts(b"u new"))
        assert not live.accepts(b"u old")


MISREAD = {"newline": (b"u:new", "end the file with a newline"), "CR": (b"u:new\r\n", "remove the carriage returns")}


@pytest.mark.parametrize(("content", "remedy"), MISREAD.values(), ids=MISREAD.keys())
def test_file_that_the_oldest_memcached_misreads_is_reported_there(node: Machine, content: bytes, remedy: str) -> None:
    node.auth.write({"users": b"u:old\n"})
    with reloading.cache(node, tls=None, auth=True) as live:
        node.auth.write({"users": content})
        if node.version == "1.6.18":
            live.agent.wait_for(503, remedy, seconds=reloading.IN_TIME)
        else:
            reloading.wait_until(lambda: live.accepts(b"u new"))


def test_agent_that_starts_after_a_rotation_logs_in(node: Machine) -> None:
    node.auth.write({"users": b"u:old\n"})
    with reloading.cache(node, tls=None, auth=True) as live:
        live.agent.end()
        node.auth.write({"users": b"u:new\n"})
        with running(live.server.port, f"--users-file={node.users}") as again:
            again.wait_for(200, "ok", seconds=reloading.IN_TIME)
            assert value(again.get()[1], "memcached_up") == 1
        live.agent = again


@NEWEST
def test_passwords_and_users_are_not_logged(node: Machine) -> None:
    node.auth.write({"users": b"alice:hidden\n"})
    with reloading.cache(node, tls=None, auth=True, agent=("--log-level=debug",)) as live:
        node.auth.write({"users": b"alice:hid den\n"})
        live.agent.wait_for(503, "line 1: contains a space", seconds=reloading.IN_TIME)
        found = live.agent.get("/healthz")[1] + live.agent.get()[1]
        node.auth.write({"users": b"alice:hidden2\n"})
        live.agent.wait_for(200, "ok", seconds=reloading.IN_TIME)
        log = live.agent.end()[1]
        assert "users: " in log
        assert not re.search("hid|alice", found + log)
