"""The issuer's writes on a real API server. The rest is in tests/unit/certificates."""

import asyncio

import pytest

from integration.issuing import Installation
from memcached_api.annotations import REVOKE_ANNOTATION
from memcached_operator.certificates import issuer as module
from memcached_operator.certificates.pki import LIFETIME
from memcached_operator.kube.client import ApiError

CONFIGURATIONS = {"patch mutatingwebhookconfigurations": 1, "patch validatingwebhookconfigurations": 1}


@pytest.fixture(autouse=True)
def no_trust_period(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for other API servers: there are none."""
    monkeypatch.setattr(module, "PROPAGATION_DELAY", 0)


def test_pair_is_created_renewed_and_revoked(installation: Installation) -> None:
    assert installation.check() == {"create secrets": 1, **CONFIGURATIONS}
    old = installation.pair()
    assert installation.bundles() == [old.ca] * 4
    assert installation.check() == {}
    assert installation.check(after=LIFETIME * 0.7) == {"patch secrets": 1, **CONFIGURATIONS}
    new = installation.pair()
    assert installation.bundles() == [new.ca + old.ca] * 4
    installation.plane.change(installation.secret, {"metadata": {"annotations": {REVOKE_ANNOTATION: "true"}}})
    assert installation.check() == {"patch secrets": 1, **CONFIGURATIONS}
    assert (installation.bundles(), installation.pair()) == ([new.ca] * 4, new)
    assert installation.check() == {}


def test_concurrent_change_of_the_secret_is_not_overwritten(installation: Installation) -> None:
    installation.check()
    marked = {"metadata": {"labels": {"changed": "meanwhile"}}}

    async def change(_: bytes, **__: object) -> None:
        await asyncio.to_thread(installation.plane.change, installation.secret, marked)

    before = installation.pair()
    with pytest.raises(ApiError, match="the object has been modified"):
        installation.check(after=LIFETIME * 0.7, _add_to_bundles=change)
    assert installation.pair() == before
