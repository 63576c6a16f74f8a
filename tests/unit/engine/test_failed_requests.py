"""Failed requests are not repeated before their cooldown ends."""

import time
from collections.abc import Iterator

import pytest

from memcached_operator.engine.writes import failed_requests as module
from memcached_operator.engine.writes.failed_requests import COOLDOWN, MAX_COOLDOWN, Cooldown
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import SERVICES, Key

FIRST, SECOND = (Key(SERVICES, "test", name) for name in ("first", "second"))
BROKEN = ApiError(500, "InternalError", "broken")


def attempts(cooldown: Cooldown, *keys: Key) -> Iterator[bool]:
    """Whether each request is sent. All of them fail."""
    for key in keys:
        sent: list[Key] = []
        with pytest.raises(ApiError, match="broken"), cooldown.guard(key, "intent"):
            fail(key, sent)
        yield bool(sent)


def fail(key: Key, sent: list[Key]) -> None:
    """Send a request, which fails."""
    sent.append(key)
    raise BROKEN


def test_each_failed_request_has_its_own_cooldown(monkeypatch: pytest.MonkeyPatch) -> None:
    cooldown, now = Cooldown(), time.monotonic()
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    assert list(attempts(cooldown, FIRST, SECOND, FIRST, SECOND)) == [True, True, False, False]
    now += COOLDOWN
    assert list(attempts(cooldown, SECOND, SECOND)) == [True, False]
    now += MAX_COOLDOWN
    assert list(attempts(cooldown, SECOND)) == [True]
    assert vars(cooldown)["_failed"].keys() == {SECOND}, "the other one has expired"


def test_cooldown_doubles_while_a_request_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    cooldown, now = Cooldown(), 0.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    sent = list[float]()
    for step in range(160):  # as events that arrive eight times a second: no cooldown ends exactly at one
        now = step / 8
        sent += [now] * next(attempts(cooldown, FIRST))
    assert sent == [0.0, 0.375, 1.0, 2.25, 4.75, 9.625, 14.5, 19.375]
    with cooldown.guard(FIRST, "another intent"):
        pass
    assert list(attempts(cooldown, FIRST)) == [True], "a success ends it"
