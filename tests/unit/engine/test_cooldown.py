"""Failed requests are not repeated before their cooldown ends."""

import time
from collections.abc import Iterator

import pytest

from memcached_operator.engine.writes import cooldown as module
from memcached_operator.engine.writes.cooldown import COOLDOWN, Cooldown
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
    assert vars(cooldown)["_failed"].keys() == {SECOND}, "the other one has expired"
