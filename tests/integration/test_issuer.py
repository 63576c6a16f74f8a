import asyncio
import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from integration.issuing import CONFIGURATIONS, Installation, configuration
from memcached_operator.certificates import issuer as module
from memcached_operator.certificates.issuer import REVOKE_ANNOTATION
from memcached_operator.certificates.pki import LIFETIME, load_bundle, needs_renewal
from memcached_operator.kube.client import ApiError


@pytest.fixture(autouse=True)
def no_trust_period(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for other API servers: there are none."""
    monkeypatch.setattr(module, "PROPAGATION_DELAY", 0)


def test_first_check_creates_a_pair_that_all_webhooks_trust(installation: Installation) -> None:
    writes = installation.check()
    assert writes == {
        "create secrets": 1,
        "patch mutatingwebhookconfigurations": 1,
        "patch validatingwebhookconfigurations": 1,
    }
    assert not needs_renewal(installation.pair(), installation.names.dns_names, datetime.now(UTC))
    assert installation.bundles() == [installation.pair().ca] * 4


def test_second_check_writes_nothing(installation: Installation) -> None:
    installation.check()
    assert installation.check() == {}


def test_due_pair_is_replaced_and_the_old_ca_stays_trusted(installation: Installation) -> None:
    installation.check()
    old = installation.pair()
    assert installation.check(after=LIFETIME * 0.7) == {
        "patch secrets": 1,
        "patch mutatingwebhookconfigurations": 1,
        "patch validatingwebhookconfigurations": 1,
    }
    new = installation.pair()
    assert new != old
    assert installation.bundles() == [new.ca + old.ca] * 4


def test_old_ca_is_removed_when_it_has_expired(installation: Installation) -> None:
    installation.check()
    installation.check(after=LIFETIME * 0.7)
    assert installation.check(after=LIFETIME * 0.8) == {}
    assert "patch secrets" not in installation.check(after=LIFETIME * 1.1)
    assert installation.bundles() == [installation.pair().ca] * 4


def test_new_ca_is_trusted_before_the_new_pair_is_stored(installation: Installation) -> None:
    installation.check()
    old = installation.pair()

    async def fail(*_: object) -> None:
        raise ApiError(500, "", "broken")

    with pytest.raises(ApiError, match="broken"):
        installation.check(after=LIFETIME * 0.7, _store=fail)
    assert installation.pair() == old
    assert all(len(load_bundle(bundle)) == 2 for bundle in installation.bundles())


@pytest.mark.parametrize("resource", CONFIGURATIONS, ids=lambda resource: resource.kind)
def test_changed_bundle_is_restored(installation: Installation, resource: Any) -> None:
    installation.check()
    key = next(key for key in installation.configurations if key.resource == resource)
    path = key.resource.path(None, key.name)
    emptied = [{"op": "remove", "path": "/webhooks/1/clientConfig/caBundle"}]
    patch = "application/json-patch+json"
    installation.plane.call(lambda client: client.request("PATCH", path, emptied, patch))
    assert installation.check() == {f"patch {resource.plural}": 1}
    assert installation.bundles() == [installation.pair().ca] * 4


def test_recreated_configuration_gets_the_bundle(installation: Installation) -> None:
    installation.check()
    key = installation.configurations[0]
    installation.plane.delete(key)
    installation.plane.create(key.resource, configuration(key))
    assert installation.check() == {"patch mutatingwebhookconfigurations": 1}
    assert installation.bundles() == [installation.pair().ca] * 4


def test_missing_configuration_is_not_an_error(installation: Installation) -> None:
    key = installation.configurations[0]
    installation.plane.delete(key)
    assert installation.check() == {"create secrets": 1, "patch validatingwebhookconfigurations": 1}
    installation.plane.create(key.resource, configuration(key))


def test_deleted_secret_is_recreated_and_running_webhooks_stay_trusted(installation: Installation) -> None:
    installation.check()
    old = installation.pair()
    installation.plane.delete(installation.secret)
    installation.check()
    new = installation.pair()
    assert new.ca != old.ca
    assert installation.bundles() == [new.ca + old.ca] * 4


def test_invalid_secret_is_replaced(installation: Installation) -> None:
    installation.check()
    installation.plane.change(installation.secret, {"data": {"tls.key": base64.b64encode(b"garbage").decode()}})
    assert installation.check()["patch secrets"] == 1
    assert not needs_renewal(installation.pair(), installation.names.dns_names, datetime.now(UTC))


def test_concurrent_change_of_the_secret_is_not_overwritten(installation: Installation) -> None:
    installation.check()
    marked = {"metadata": {"labels": {"changed": "meanwhile"}}}

    async def change(_: bytes, **__: object) -> None:
        await asyncio.to_thread(installation.plane.change, installation.secret, marked)

    before = installation.pair()
    with pytest.raises(ApiError, match="the object has been modified"):
        installation.check(after=LIFETIME * 0.7, _add_to_bundles=change)
    assert installation.pair() == before


def test_revoked_ca_is_no_longer_trusted(installation: Installation) -> None:
    installation.check()
    old = installation.pair()
    installation.plane.delete(installation.secret)
    installation.check()
    new = installation.pair()
    assert installation.bundles() == [new.ca + old.ca] * 4
    installation.plane.change(installation.secret, {"metadata": {"annotations": {REVOKE_ANNOTATION: "true"}}})
    assert installation.check() == {
        "patch secrets": 1,
        "patch mutatingwebhookconfigurations": 1,
        "patch validatingwebhookconfigurations": 1,
    }
    assert installation.bundles() == [new.ca] * 4
    assert installation.pair() == new
    assert installation.check() == {}


def test_renewal_after_a_revocation_keeps_the_old_ca(installation: Installation) -> None:
    installation.check()
    installation.plane.change(installation.secret, {"metadata": {"annotations": {REVOKE_ANNOTATION: "true"}}})
    installation.check()
    old = installation.pair()
    installation.check(after=LIFETIME * 0.7)
    assert installation.bundles() == [installation.pair().ca + old.ca] * 4


def test_failed_revocation_is_completed_by_the_next_check(installation: Installation) -> None:
    installation.check()
    installation.plane.delete(installation.secret)
    installation.check()
    installation.plane.change(installation.secret, {"metadata": {"annotations": {REVOKE_ANNOTATION: "true"}}})

    async def fail(*_: object, **__: object) -> None:
        raise ApiError(500, "", "broken")

    with pytest.raises(ApiError, match="broken"):
        installation.check(_add_to_bundles=fail)
    assert installation.check()["patch secrets"] == 1
    assert installation.bundles() == [installation.pair().ca] * 4
