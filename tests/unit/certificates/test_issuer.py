import asyncio
import base64
from datetime import timedelta
from typing import Any, cast

import pytest

from memcached_operator.certificates import issuer as module
from memcached_operator.certificates.issuer import (
    MUTATING_WEBHOOKS,
    REVOKE_ANNOTATION,
    VALIDATING_WEBHOOKS,
    Issuer,
    WebhookNames,
    ca_bundle_patch,
    key_pair_of,
    revocation_requested,
    secret_of,
)
from memcached_operator.certificates.pki import LIFETIME, KeyPair, issue, load_bundle
from memcached_operator.kube.client import ApiError, Client
from memcached_operator.kube.resource import SECRETS, Key, Object
from unit.builders import NOW

NAMES = WebhookNames("test", "cert", "webhook", "mutating", "validating")
PAIR, OTHER = issue(NAMES.dns_names, LIFETIME, NOW), issue(NAMES.dns_names, LIFETIME, NOW)


def encoded(text: bytes) -> str:
    """As Kubernetes carries bytes."""
    return base64.b64encode(text).decode()


def configuration(*bundles: bytes | None) -> Object:
    """A webhook configuration with one webhook per bundle; None for one that has none."""
    clients = [{} if bundle is None else {"caBundle": encoded(bundle)} for bundle in bundles]
    return {"metadata": {"resourceVersion": "7"}, "webhooks": [{"clientConfig": client} for client in clients]}


GUARD = {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}


def trusting(index: int, *pairs: KeyPair) -> dict[str, str]:
    """The operation that makes one webhook trust these CAs."""
    bundle = encoded(b"".join(pair.ca for pair in pairs))
    return {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle}


PATCHES: dict[str, tuple[Object, list[dict[str, str]]]] = {
    "no webhooks": (configuration(), []),
    "webhooks are null": ({**configuration(), "webhooks": None}, []),
    "trusted": (configuration(PAIR.ca), []),
    "trusted beside another": (configuration(PAIR.ca + OTHER.ca), []),
    "no bundle": (configuration(None), [GUARD, trusting(0, PAIR)]),
    "an empty bundle": (configuration(b""), [GUARD, trusting(0, PAIR)]),
    "another bundle": (configuration(OTHER.ca), [GUARD, trusting(0, PAIR, OTHER)]),
    "the second of two": (configuration(PAIR.ca, OTHER.ca), [GUARD, trusting(1, PAIR, OTHER)]),
    "garbage": (configuration(b"garbage"), [GUARD, trusting(0, PAIR)]),
}


@pytest.mark.parametrize(("live", "patch"), PATCHES.values(), ids=PATCHES.keys())
def test_bundle_patch(live: Object, patch: list[dict[str, str]]) -> None:
    assert ca_bundle_patch(live, PAIR.ca, NOW) == patch


ALONE: dict[str, tuple[Object, list[dict[str, str]]]] = {
    "trusted": (configuration(PAIR.ca), []),
    "trusted beside another": (configuration(PAIR.ca + OTHER.ca), [GUARD, trusting(0, PAIR)]),
    "another bundle": (configuration(OTHER.ca), [GUARD, trusting(0, PAIR)]),
    "one of two": (configuration(PAIR.ca, OTHER.ca + PAIR.ca), [GUARD, trusting(1, PAIR)]),
}


@pytest.mark.parametrize(("live", "patch"), ALONE.values(), ids=ALONE.keys())
def test_bundle_patch_that_revokes_all_others(live: Object, patch: list[dict[str, str]]) -> None:
    assert ca_bundle_patch(live, PAIR.ca, NOW, exclusive=True) == patch


@pytest.mark.parametrize(
    ("annotations", "asked"),
    [
        (None, False),
        ({}, False),
        ({REVOKE_ANNOTATION: ""}, False),
        ({REVOKE_ANNOTATION: "false"}, False),
        ({REVOKE_ANNOTATION: "true"}, True),
    ],
)
def test_only_true_revokes(annotations: dict[str, str] | None, asked: bool) -> None:
    assert revocation_requested({"metadata": {"annotations": annotations}}) is asked


def test_a_pair_comes_back_out_of_its_secret() -> None:
    assert key_pair_of(secret_of(NAMES, PAIR)) == PAIR


def without(name: str) -> dict[str, str]:
    """The Secret's data without one entry."""
    return {key: value for key, value in secret_of(NAMES, PAIR)["data"].items() if key != name}


NO_PAIRS: dict[str, Any] = {
    "no Secret": None,
    "no data": {"data": None},
    "no key": {"data": without("tls.key")},
    "no CA": {"data": without("ca.crt")},
    "not base64": {"data": secret_of(NAMES, PAIR)["data"] | {"tls.crt": "a"}},
}


@pytest.mark.parametrize("secret", NO_PAIRS.values(), ids=NO_PAIRS.keys())
def test_no_pair(secret: Object | None) -> None:
    assert key_pair_of(secret) is None


def test_the_secret_is_one_kubernetes_knows_as_tls() -> None:
    secret = secret_of(NAMES, PAIR)
    assert (secret["type"], sorted(secret["data"])) == ("kubernetes.io/tls", ["ca.crt", "tls.crt", "tls.key"])
    assert (secret["metadata"]["namespace"], secret["metadata"]["name"]) == ("test", "cert")


def test_the_certificate_is_made_out_for_the_service() -> None:
    assert NAMES.dns_names == ["webhook.test.svc", "webhook.test.svc.cluster.local"]


class Api:
    """An API server that stores bundles, and no Secrets while there is an error."""

    def __init__(self, error: ApiError | None) -> None:
        self.error = error
        self.secret: Object | None = None
        self.bundles: dict[Key, bytes] = {
            Key(MUTATING_WEBHOOKS, "", "mutating"): b"",
            Key(VALIDATING_WEBHOOKS, "", "validating"): b"",
        }
        self.patches = 0

    async def get(self, key: Key) -> Object | None:
        """The Secret, or a configuration."""
        return self.secret if key.resource == SECRETS else configuration(self.bundles[key])

    async def create(self, key: Key, obj: Object) -> None:
        """Store the Secret."""
        if self.error is not None:
            raise self.error
        self.secret = obj

    async def patch(self, key: Key, patch: Any, content_type: str = "") -> None:
        """Store a bundle."""
        self.patches += 1
        self.bundles[key] = base64.b64decode(patch[1]["value"])


def trusted(api: Api) -> list[int]:
    """How many CAs each configuration trusts."""
    return [len(load_bundle(bundle)) for bundle in api.bundles.values()]


def checked(issuer: Issuer, times: int = 1) -> list[str]:
    """Check so many times; what went wrong."""
    failed: list[str] = []
    for _ in range(times):
        try:
            asyncio.run(issuer.check())
        except ApiError as error:
            failed.append(error.reason)
    return failed


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """API servers take up a configuration at once."""
    monkeypatch.setattr(module, "PROPAGATION_DELAY", 0)


def test_a_secret_that_cannot_be_stored_does_not_add_a_new_ca_at_every_check(no_waiting: None) -> None:
    api = Api(ApiError(403, "Forbidden", "secrets is forbidden"))
    issuer = Issuer(cast("Client", api), NAMES)
    assert checked(issuer, 4) == ["Forbidden"] * 4
    assert (trusted(api), api.patches) == ([1, 1], 2)
    api.error = None
    assert checked(issuer, 2) == []
    pair = key_pair_of(api.secret)
    assert pair is not None
    assert list(api.bundles.values()) == [pair.ca, pair.ca]


def test_a_pair_that_waited_too_long_to_be_stored_is_made_anew(
    no_waiting: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = Api(ApiError(500, "InternalError", "etcdserver: request timed out"))
    issuer = Issuer(cast("Client", api), NAMES, timedelta(hours=1))
    now = [NOW]
    monkeypatch.setattr(issuer, "_now", lambda: now[0])
    assert checked(issuer, 2) == ["InternalError"] * 2
    assert trusted(api) == [1, 1]
    now[0] = NOW + timedelta(minutes=59)
    assert checked(issuer, 2) == ["InternalError"] * 2
    assert trusted(api) == [2, 2]
