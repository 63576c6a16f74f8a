"""The Secret and webhook configurations that a certificate issuer manages, in a real API server."""

import asyncio
import base64
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from unittest import mock

from integration.control_plane import ControlPlane, client_of
from memcached_operator.certificates.issuer import (
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
    Issuer,
    WebhookNames,
    key_pair_of,
)
from memcached_operator.certificates.pki import LIFETIME, KeyPair
from memcached_operator.kube.resource import SECRETS, Key, Object

CONFIGURATIONS = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)


@dataclass(frozen=True)
class Installation:
    """The objects of one installation, and an issuer for them."""

    plane: ControlPlane
    names: WebhookNames

    @property
    def secret(self) -> Key:
        """The Secret of the pair."""
        return Key(SECRETS, self.names.namespace, self.names.secret)

    @property
    def configurations(self) -> list[Key]:
        """The webhook configurations that trust the pair."""
        return [Key(MUTATING_WEBHOOKS, "", self.names.mutating), Key(VALIDATING_WEBHOOKS, "", self.names.validating)]

    def pair(self) -> KeyPair:
        """The pair in the Secret."""
        found = key_pair_of(self.plane.get(self.secret))
        assert found is not None
        return found

    def bundles(self) -> list[bytes]:
        """The CA bundles of all webhooks."""
        hooks = [hook for key in self.configurations for hook in self.plane.must_get(key)["webhooks"]]
        return [base64.b64decode(hook["clientConfig"].get("caBundle", "")) for hook in hooks]

    def check(self, after: timedelta = timedelta(0)) -> None:
        """Run one check of an issuer whose clock is `after` ahead."""

        async def run() -> None:
            async with client_of(self.plane.connection) as client:
                issuer = Issuer(client, self.names, LIFETIME)
                with mock.patch.object(issuer, "_now", side_effect=lambda: datetime.now(UTC) + after):
                    await issuer.check()

        asyncio.run(run())


def configuration(key: Key, hooks: int = 2) -> Object:
    """A webhook configuration that matches no existing resource."""
    rule = {"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["things"], "operations": ["CREATE"]}
    common = {
        "rules": [rule],
        "clientConfig": {"service": {"namespace": "default", "name": "webhook"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
    }
    return {
        "apiVersion": key.resource.api_version,
        "kind": key.resource.kind,
        "metadata": {"name": key.name},
        "webhooks": [{"name": f"hook{number}.example.com", **common} for number in range(hooks)],
    }
