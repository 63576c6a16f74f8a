import base64
from typing import Any

import pytest

from memcached_operator.certificates.issuer import Names, bundle_patch, pair_of, secret_of
from memcached_operator.certificates.pki import LIFETIME, Pair, issue
from memcached_operator.engine.resource import Object
from unit.builders import NOW

NAMES = Names("test", "cert", "webhook", "mutating", "validating")
PAIR, OTHER = issue(NAMES.dns, LIFETIME, NOW), issue(NAMES.dns, LIFETIME, NOW)


def encoded(text: bytes) -> str:
    """As Kubernetes carries bytes."""
    return base64.b64encode(text).decode()


def configuration(*bundles: bytes | None) -> Object:
    """A webhook configuration with one webhook per bundle; None for one that has none."""
    clients = [{} if bundle is None else {"caBundle": encoded(bundle)} for bundle in bundles]
    return {"metadata": {"resourceVersion": "7"}, "webhooks": [{"clientConfig": client} for client in clients]}


GUARD = {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}


def trusting(index: int, *pairs: Pair) -> dict[str, str]:
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
    assert bundle_patch(live, PAIR.ca, NOW) == patch


def test_a_pair_comes_back_out_of_its_secret() -> None:
    assert pair_of(secret_of(NAMES, PAIR)) == PAIR


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
    assert pair_of(secret) is None


def test_the_secret_is_one_kubernetes_knows_as_tls() -> None:
    secret = secret_of(NAMES, PAIR)
    assert (secret["type"], sorted(secret["data"])) == ("kubernetes.io/tls", ["ca.crt", "tls.crt", "tls.key"])
    assert (secret["metadata"]["namespace"], secret["metadata"]["name"]) == ("test", "cert")


def test_the_certificate_is_made_out_for_the_service() -> None:
    assert NAMES.dns == ["webhook.test.svc", "webhook.test.svc.cluster.local"]
