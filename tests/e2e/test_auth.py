"""Passwords of caches on a real cluster: changed without a restart, also at the connection limit."""

import signal
from contextlib import ExitStack
from typing import Any

import pytest

from support import kube
from support.agents import healthz, restarts, value
from support.clients import Client, Server, accepts
from support.kube import Object, eventually, must_get
from support.memcached import SMALL, memcached, pods_of, wait_until_degraded, wait_until_ready
from support.processes import send_signal
from support.secrets import MISSING_REPORTED, MOUNTED, RELOADED, sync, users_secret

KEYS = [f"key-{number}" for number in range(10_000)]
OLD, NEW, LAST = "web:old", "web:new", "web:last"


def server(pod: Object, user: str | None) -> Server:
    """The memcached of a pod, for a user."""
    return Server(pod["status"]["podIP"], 11211, user=user)


def accepted(pod: Object, user: str | None) -> bool:
    """Whether a user can log in now. None: without a login."""
    return accepts(server(pod, user))


@pytest.fixture
def pods(namespace: str) -> list[Object]:
    """The two pods of a cache with one user and 10,000 items each."""
    return created(namespace, size=2)


def created(namespace: str, **spec: Any) -> list[Object]:
    """The pods of a cache with one user and 10,000 items each."""
    kube.apply(users_secret(namespace, "cache-users", OLD))
    kube.apply(memcached(namespace, auth={"secretName": "cache-users"}, resources=SMALL, **spec))
    wait_until_ready(namespace)
    found = pods_of(namespace)
    for pod in found:
        with Client(server(pod, OLD)) as client:
            client.store(KEYS)
    return found


def test_changed_password_costs_no_item_and_no_connection(namespace: str, pods: list[Object]) -> None:
    assert not any(accepted(pod, user) for pod in pods for user in (None, NEW))
    with ExitStack() as stack:
        kept = [stack.enter_context(Client(server(pod, OLD))) for pod in pods]
        kube.apply(users_secret(namespace, "cache-users", NEW, OLD))
        for pod in pods:  # without `sync`: in the time that users see
            eventually(lambda found=pod: accepted(found, NEW), RELOADED, "the new password")
            assert accepted(pod, OLD)
        kube.apply(users_secret(namespace, "cache-users", NEW))
        for pod in pods:
            eventually(lambda found=pod: not accepted(_synced(found), OLD), RELOADED, "the old password is refused")
            assert accepted(pod, NEW)
        assert [each.count(KEYS) for each in kept] == [len(KEYS)] * len(pods)
    for pod in pods:
        assert set(restarts(pod).values()) == {0}
        eventually(lambda found=pod: healthz(found) == "ok\n", 30, "no problem is reported")


def test_password_changes_after_memcached_was_restarted(namespace: str, users: Object) -> None:
    send_signal(users, "memcached", signal.SIGKILL)
    eventually(lambda: restarts(users)["memcached"] == 1, 60, "memcached was restarted")
    wait_until_ready(namespace, timeout=90)
    eventually(lambda: healthz(users) == "ok\n", 30, "the agent has logged in again")
    kube.apply(users_secret(namespace, "cache-users", NEW))
    eventually(lambda: accepted(_synced(users), NEW), RELOADED, "the new password")
    eventually(lambda: not accepted(users, OLD), 30, "the old password is refused")


def test_password_changes_at_the_connection_limit(namespace: str) -> None:
    (pod,) = created(namespace, size=1, cache={"maxConnections": 40, "threads": 1})
    with ExitStack() as stack:
        kept: list[Client] = []
        for _ in range(64):
            try:
                kept.append(stack.enter_context(Client(server(pod, OLD))))
            except OSError:
                break
        else:
            pytest.fail("memcached accepts every connection")
        kube.apply(users_secret(namespace, "cache-users", NEW))
        said = "users: not verified yet"
        eventually(lambda: _said(_synced(pod), said), RELOADED, "the agent cannot log in to verify the users")
        assert kept[0].count(KEYS) == len(KEYS)
        kept.pop().close()
        eventually(lambda: accepted(pod, NEW), 30, "the new password, although nothing could be verified")
        assert not accepted(pod, OLD)
    eventually(lambda: healthz(pod) == "ok\n", 60, "no problem is reported")
    assert set(restarts(pod).values()) == {0}


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([f"user{number}:password" for number in range(9)], "8"),
        (["web:" + "x" * 400], "line 1"),
        (["web:new", "no colon"], "line 2"),
        ([""], "line 1"),
        ([], "empty"),
    ],
    ids=["nine users", "long line", "no colon", "empty line", "empty"],
)
def test_invalid_users_leave_the_previous_ones(namespace: str, lines: list[str], reason: str, users: Object) -> None:
    kube.apply(users_secret(namespace, "cache-users", *lines))
    eventually(lambda: _said(_synced(users), "users: ", reason), RELOADED, f"{reason} is reported")
    assert "new" not in healthz(users).replace("newline", "")  # nothing of the content
    assert value(users, 'memcached_agent_last_reload_successful{source="users"}') == 0
    assert accepted(users, OLD)
    assert set(restarts(users).values()) == {0}
    kube.apply(users_secret(namespace, "cache-users", LAST))
    eventually(lambda: accepted(_synced(users), LAST), RELOADED, "the corrected users")
    eventually(lambda: healthz(users) == "ok\n", 30, "no problem is reported")


@pytest.fixture
def users(namespace: str) -> Object:
    """The pod of a cache with one user."""
    (found,) = created(namespace, size=1)
    return found


def _said(pod: Object, *parts: str) -> bool:
    found = healthz(pod)
    assert all(each in found for each in parts), found
    return True


def _synced(pod: Object) -> Object:
    """The pod, after the kubelet was asked to update its volumes."""
    sync([must_get("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])])
    return pod


def test_missing_users_are_named_and_used_when_they_appear(namespace: str) -> None:
    kube.apply(memcached(namespace, size=1, auth={"secretName": "cache-users"}, resources=SMALL))
    degraded = wait_until_degraded(namespace, "SecretUnavailable", timeout=MISSING_REPORTED)
    assert 'secret "cache-users" not found' in degraded["message"]
    kube.apply(users_secret(namespace, "cache-users", OLD))
    wait_until_ready(namespace, timeout=MOUNTED)
    (pod,) = pods_of(namespace)
    assert accepted(pod, OLD)
