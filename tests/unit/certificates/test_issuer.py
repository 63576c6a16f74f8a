import base64
from typing import Any

import pytest

from memcached_api.annotations import REVOKE_ANNOTATION
from memcached_operator.certificates import issuer
from memcached_operator.certificates.pki import LIFETIME, KeyPair, issue
from memcached_operator.kube.resource import Object
from unit.builders import NOW

NAMES = issuer.WebhookNames("test", "cert", "webhook", "mutating", "validating")
PAIR, OTHER = issue(NAMES.dns_names, LIFETIME, NOW), issue(NAMES.dns_names, LIFETIME, NOW)


def encoded(text: bytes) -> str:
    """Bytes as the API server represents them."""
    return base64.b64encode(text).decode()


def configuration(*bundles: bytes | None) -> Object:
    """A webhook configuration with one webhook per bundle; None: a webhook without a bundle."""
    clients = [{} if bundle is None else {"caBundle": encoded(bundle)} for bundle in bundles]
    return {"metadata": {"resourceVersion": "7"}, "webhooks": [{"clientConfig": client} for client in clients]}


PRECONDITION = {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}


def trusting(index: int, *pairs: KeyPair) -> dict[str, str]:
    """The patch operation with which one webhook trusts these CAs."""
    bundle = encoded(b"".join(pair.ca for pair in pairs))
    return {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle}


PATCHES: dict[str, tuple[Object, list[dict[str, str]]]] = {
    "no webhooks": (configuration(), []),
    "webhooks are null": ({**configuration(), "webhooks": None}, []),
    "trusted": (configuration(PAIR.ca), []),
    "trusted beside another": (configuration(PAIR.ca + OTHER.ca), []),
    "no bundle": (configuration(None), [PRECONDITION, trusting(0, PAIR)]),
    "an empty bundle": (configuration(b""), [PRECONDITION, trusting(0, PAIR)]),
    "another bundle": (configuration(OTHER.ca), [PRECONDITION, trusting(0, PAIR, OTHER)]),
    "the second of two": (configuration(PAIR.ca, OTHER.ca), [PRECONDITION, trusting(1, PAIR, OTHER)]),
    "garbage": (configuration(b"garbage"), [PRECONDITION, trusting(0, PAIR)]),
}


@pytest.mark.parametrize(("live", "patch"), PATCHES.values(), ids=PATCHES.keys())
def test_bundle_patch(live: Object, patch: list[dict[str, str]]) -> None:
    assert issuer.ca_bundle_patch(live, PAIR.ca, NOW) == patch


EXCLUSIVE: dict[str, tuple[Object, list[dict[str, str]]]] = {
    "trusted": (configuration(PAIR.ca), []),
    "trusted beside another": (configuration(PAIR.ca + OTHER.ca), [PRECONDITION, trusting(0, PAIR)]),
    "another bundle": (configuration(OTHER.ca), [PRECONDITION, trusting(0, PAIR)]),
    "one of two": (configuration(PAIR.ca, OTHER.ca + PAIR.ca), [PRECONDITION, trusting(1, PAIR)]),
}


@pytest.mark.parametrize(("live", "patch"), EXCLUSIVE.values(), ids=EXCLUSIVE.keys())
def test_exclusive_bundle_patch_revokes_all_other_cas(live: Object, patch: list[dict[str, str]]) -> None:
    assert issuer.ca_bundle_patch(live, PAIR.ca, NOW, exclusive=True) == patch


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        (None, False),
        ({}, False),
        ({REVOKE_ANNOTATION: ""}, False),
        ({REVOKE_ANNOTATION: "false"}, False),
        ({REVOKE_ANNOTATION: "true"}, True),
    ],
)
def test_only_annotation_true_revokes(annotations: dict[str, str] | None, expected: bool) -> None:
    assert issuer.revocation_requested({"metadata": {"annotations": annotations}}) is expected


def test_pair_is_read_from_its_secret() -> None:
    assert issuer.key_pair_of(issuer.secret_of(NAMES, PAIR)) == PAIR


def without(name: str) -> dict[str, str]:
    """The Secret's data without one entry."""
    return {key: value for key, value in issuer.secret_of(NAMES, PAIR)["data"].items() if key != name}


INCOMPLETE: dict[str, Any] = {
    "no Secret": None,
    "no data": {"data": None},
    "no key": {"data": without("tls.key")},
    "no CA": {"data": without("ca.crt")},
    "not base64": {"data": issuer.secret_of(NAMES, PAIR)["data"] | {"tls.crt": "a"}},
}


@pytest.mark.parametrize("secret", INCOMPLETE.values(), ids=INCOMPLETE.keys())
def test_incomplete_secret_has_no_pair(secret: Object | None) -> None:
    assert issuer.key_pair_of(secret) is None


def test_secret_has_the_type_and_keys_of_a_tls_secret() -> None:
    secret = issuer.secret_of(NAMES, PAIR)
    assert (secret["type"], sorted(secret["data"])) == ("kubernetes.io/tls", ["ca.crt", "tls.crt", "tls.key"])
    assert (secret["metadata"]["namespace"], secret["metadata"]["name"]) == ("test", "cert")


def test_certificate_names_are_those_of_the_service() -> None:
    assert NAMES.dns_names == ["webhook.test.svc", "webhook.test.svc.cluster.local"]
