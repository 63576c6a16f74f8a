"""The issuer over months: every webhook pod is trusted at every moment, also by an API server with an old CA bundle."""

import asyncio
import base64
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from memcached_api.annotations import REVOKE_ANNOTATION
from memcached_operator.certificates import issuer as module
from memcached_operator.certificates.issuer import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Issuer, key_pair_of
from memcached_operator.certificates.pki import LIFETIME, KeyPair, issue, load_bundle
from memcached_operator.kube.client import JSON_PATCH, ApiClient, ApiError
from memcached_operator.kube.resource import SECRETS, Key, Object
from unit.builders import NOW
from unit.certificates.test_issuer import NAMES, configuration, encoded
from unit.certificates.test_pki import NEW_VERSION, VERSION, changed
from unit.fakes import merged

SECRET = Key(SECRETS, NAMES.namespace, NAMES.secret)
MUTATING, VALIDATING = Key(MUTATING_WEBHOOKS, "", NAMES.mutating), Key(VALIDATING_WEBHOOKS, "", NAMES.validating)
RENEWAL = ["patch mutating", "patch validating", "patch cert"]
DUE = LIFETIME * 0.7
LAG = timedelta(seconds=1.9)
"""Time until the slowest API server uses a new bundle."""
POD_LAG = timedelta(seconds=90)
"""Time until the kubelet has updated the Secret in the last pod."""
UNKNOWN_VERSION = changed(issue(NAMES.dns_names, LIFETIME, NOW).certificate, VERSION, NEW_VERSION)
BROKEN = ApiError(500, "InternalError", "etcdserver: request timed out")


class World:
    """An installation with two webhooks per configuration, and its clock; as a client: its API server.

    `writes`: since the last check. `broken`: the objects whose writes fail.
    """

    def __init__(self) -> None:
        self.now = NOW
        self.objects: dict[Key, Object] = {key: configuration(None, None) for key in (MUTATING, VALIDATING)}
        self.writes: list[str] = []
        self.broken: set[Key] = set()
        self.bundles: list[tuple[datetime, list[bytes]]] = []
        self.served: list[tuple[datetime, KeyPair]] = []
        self.issuer = Issuer(cast("ApiClient", self), NAMES)
        vars(self.issuer)["_now"] = lambda: self.now

    async def get(self, key: Key) -> Object | None:
        """An object, or None."""
        return self.objects.get(key)

    async def create(self, key: Key, obj: Object) -> None:
        """Create the Secret."""
        self._write("create", key, lambda: {**obj, "metadata": {**obj["metadata"], "resourceVersion": "1"}})

    async def patch(self, key: Key, patch: Any, content_type: str = "") -> None:
        """Patch the Secret or a configuration."""
        live = self.objects[key]
        self._write("patch", key, lambda: patched(live, patch) if content_type == JSON_PATCH else merged(live, patch))

    def _write(self, verb: str, key: Key, change: Callable[[], Object]) -> None:
        if key in self.broken:
            raise BROKEN
        self.objects[key] = change()
        self.writes.append(f"{verb} {key.name}")
        self.record()

    async def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.now += timedelta(seconds=seconds)
        self.record()

    def check(self, after: timedelta = timedelta(0)) -> list[str]:
        """Run a check after this time; return its writes."""
        self.now += after
        self.writes.clear()
        self.record()
        asyncio.run(self.issuer.check())
        return self.writes

    def failing_check(self, after: timedelta = timedelta(0)) -> None:
        """Run a check that fails."""
        with pytest.raises(ApiError, match="timed out"):
            self.check(after)

    @property
    def pair(self) -> KeyPair:
        """The pair in the Secret."""
        found = key_pair_of(self.objects[SECRET])
        assert found is not None
        return found

    def trusted(self) -> list[bytes]:
        """The CA bundles of all webhooks."""
        configurations = [self.objects[key] for key in (MUTATING, VALIDATING) if key in self.objects]
        clients = [hook["clientConfig"] for each in configurations for hook in each["webhooks"]]
        return [base64.b64decode(client.get("caBundle", "")) for client in clients]

    def revoke(self) -> None:
        """Request that no other CA is trusted."""
        self.objects[SECRET] = merged(self.objects[SECRET], {"metadata": {"annotations": {REVOKE_ANNOTATION: "true"}}})

    def record(self) -> None:
        """Record the bundles and the pair, and check that late clients trust every pod."""
        self.bundles.append((self.now, self.trusted()))
        pair = key_pair_of(self.objects.get(SECRET))
        if pair is not None:
            self.served.append((self.now, pair))
        ends = [*(since for since, _ in self.served[1:]), self.now]
        in_pods = [each for (_, each), end in zip(self.served, ends, strict=False) if end >= self.now - POD_LAG]
        for lag in (timedelta(0), LAG):
            used = [bundles for since, bundles in self.bundles if since <= self.now - lag]
            for bundle in used[-1] if used else ():
                assert all(each.ca in bundle for each in in_pods), f"a client with a lag of {lag} at {self.now}"


def patched(live: Object, patch: list[Object]) -> Object:
    """A webhook configuration with other CA bundles; the first operation is the precondition."""
    assert patch[0]["value"] == live["metadata"]["resourceVersion"]
    added = {each["path"]: {"caBundle": each["value"]} for each in patch[1:]}
    paths = [f"/webhooks/{index}/clientConfig/caBundle" for index in range(len(live["webhooks"]))]
    hooks = [
        merged(hook, {"clientConfig": added.get(path, {})}) for path, hook in zip(paths, live["webhooks"], strict=True)
    ]
    return {**live, "webhooks": hooks}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """An installation without a certificate."""
    found = World()
    monkeypatch.setattr(module, "asyncio", SimpleNamespace(sleep=found.sleep))
    return found


def test_first_check_creates_a_pair_that_all_webhooks_trust(world: World) -> None:
    assert world.check() == ["patch mutating", "patch validating", "create cert"]
    assert world.trusted() == [world.pair.ca] * 4
    assert world.check() == []


def test_due_pair_is_replaced_and_the_old_ca_is_trusted_until_it_expires(world: World) -> None:
    world.check()
    old = world.pair
    assert world.check(DUE) == RENEWAL
    assert world.pair != old
    assert world.trusted() == [world.pair.ca + old.ca] * 4
    assert world.check(LIFETIME * 0.1) == []
    assert world.check(LIFETIME * 0.3) == RENEWAL[:2]
    assert world.trusted() == [world.pair.ca] * 4


@pytest.mark.parametrize("key", [MUTATING, VALIDATING], ids=lambda key: key.name)
@pytest.mark.parametrize("bundles", [(None, None), (b"", b"garbage")], ids=["recreated", "changed"])
def test_bundles_are_restored(
    world: World, key: Key, bundles: tuple[bytes | None, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.check()
    monkeypatch.setattr(world, "record", lambda: None)  # the API server trusts no pod until then
    world.objects[key] = configuration(*bundles)
    assert world.check() == [f"patch {key.name}"]
    assert world.trusted() == [world.pair.ca] * 4


def test_missing_configuration_is_no_error(world: World) -> None:
    del world.objects[MUTATING]
    assert world.check() == ["patch validating", "create cert"]


BROKEN_SECRETS: dict[str, tuple[Object | None, str]] = {
    "deleted": (None, ""),
    "invalid": ({"data": {"tls.key": encoded(b"garbage")}}, "it cannot be used: ValueError"),
    "unknown version": ({"data": {"tls.crt": encoded(UNKNOWN_VERSION)}}, "it cannot be used: InvalidVersion 7 is"),
    "incomplete": ({"data": {"ca.crt": None}}, "tls.crt, tls.key or ca.crt is missing"),
}


@pytest.mark.parametrize(("broken", "reason"), BROKEN_SECRETS.values(), ids=BROKEN_SECRETS)
def test_lost_pair_is_replaced_and_running_webhooks_stay_trusted(
    world: World, broken: Object | None, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    world.check()
    old = world.pair
    caplog.set_level(logging.INFO)
    if broken is None:
        del world.objects[SECRET]
    else:
        world.objects[SECRET] = merged(world.objects[SECRET], broken)
    assert world.check(timedelta(seconds=10))[:2] == RENEWAL[:2]
    assert world.pair.ca != old.ca
    assert world.trusted() == [world.pair.ca + old.ca] * 4
    replacing = f"replacing the webhook certificate in {SECRET}: {reason}"
    assert [line.startswith(replacing) for line in caplog.messages if "replacing" in line] == [True] * bool(reason)


def test_revoked_ca_is_no_longer_trusted(world: World) -> None:
    world.check()
    world.check(DUE)
    pair = world.pair
    world.revoke()
    world.broken = {VALIDATING}
    world.failing_check(timedelta(days=1))
    world.broken = set()
    assert world.check() == ["patch validating", "patch cert"]
    assert (world.trusted(), world.pair) == ([pair.ca] * 4, pair)
    assert world.check() == []
    assert world.check(DUE) == RENEWAL
    assert world.trusted() == [world.pair.ca + pair.ca] * 4, "the request is fulfilled"


def test_failing_write_of_the_secret_does_not_add_a_ca_at_every_check(world: World) -> None:
    world.broken = {SECRET}
    for _ in range(4):
        world.failing_check()
    assert [len(load_bundle(each)) for each in world.trusted()] == [1] * 4
    world.broken = set()
    assert world.check() == ["create cert"]
    assert world.trusted() == [world.pair.ca] * 4


def test_pair_that_could_not_be_stored_in_time_is_issued_again(world: World) -> None:
    world.broken = {SECRET}
    for after in (timedelta(0), DUE, timedelta(0)):
        world.failing_check(after)
    assert [len(load_bundle(each)) for each in world.trusted()] == [2] * 4


def test_unexpected_error_does_not_end_the_checks(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = [ValueError("defect"), TypeError("defect"), asyncio.CancelledError()]

    async def check() -> None:
        raise errors.pop(0)

    monkeypatch.setattr(world.issuer, "check", check)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(world.issuer.run())
    assert caplog.text.count("webhook certificate: unexpected error, please report it; retrying in 10 s") == 2
