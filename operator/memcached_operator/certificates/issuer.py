"""Manages the webhook's Secret and the CA bundles of the webhook configurations; runs in the leader only.

A pair is replaced in this order: first the new CA is added to the CA bundles, next to the old one; then the new leaf
certificate is written to the Secret. So a webhook pod never serves a certificate that is not trusted.

An old CA stays trusted until it expires. The annotation REVOKE_ANNOTATION removes it at once.
"""

import asyncio
import base64
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from memcached_api.annotations import REVOKE_ANNOTATION
from memcached_operator.certificates import pki
from memcached_operator.kube.client import JSON_PATCH, ApiClient, ApiError
from memcached_operator.kube.resource import SECRETS, Key, Object, Resource, nested_map

log = logging.getLogger(__name__)

MUTATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"
)
VALIDATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"
)

CHECK_PERIOD = 10.0
"""Seconds between checks of the Secret and the webhook configurations. One check takes three reads."""

PROPAGATION_DELAY = 2.0
"""Seconds between adding a new CA to the bundles and writing its leaf certificate, in which the API servers
observe the new CA."""


@dataclass(frozen=True)
class WebhookNames:
    """The names of the Secret, of the Service and of the webhook configurations."""

    namespace: str
    secret: str
    service: str
    mutating: str
    validating: str

    @property
    def dns_names(self) -> list[str]:
        """The DNS name that the API server uses for the webhook, and its long form."""
        return [f"{self.service}.{self.namespace}.svc", f"{self.service}.{self.namespace}.svc.cluster.local"]


class Issuer:
    """One issuer per operator installation."""

    def __init__(self, client: ApiClient, names: WebhookNames, lifetime: timedelta = pki.LIFETIME) -> None:
        self._client = client
        self._names = names
        self._lifetime = lifetime
        self._unstored: pki.KeyPair | None = None
        self._secret = Key(SECRETS, names.namespace, names.secret)
        self._configurations = [
            Key(MUTATING_WEBHOOKS, "", names.mutating),
            Key(VALIDATING_WEBHOOKS, "", names.validating),
        ]
        self._now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def run(self) -> None:
        """Check periodically, until cancelled. An error is logged, and the next check retries."""
        while True:
            try:
                await self.check()
            except ApiError as error:
                log.warning("webhook certificate: %s; retrying in %.0f s", error, CHECK_PERIOD)
            except Exception:  # at the outermost level: a defect must not stop the reconciles
                log.exception(
                    "webhook certificate: unexpected error, please report it; retrying in %.0f s", CHECK_PERIOD
                )
            await asyncio.sleep(CHECK_PERIOD)

    async def check(self) -> None:
        """Bring the Secret and the CA bundles up to date. Writes only what differs."""
        secret = await self._client.get(self._secret)
        pair = key_pair_of(secret)
        reason = self._renewal_reason(pair)
        if secret is not None and pair is not None and not reason:
            await self._ensure_trusted(secret, pair)
            return
        if secret is not None:
            log.info("replacing the webhook certificate in %s: %s", self._secret, reason)
        # Reused until it is stored in the Secret: a CA that is discarded stays in the bundles until it expires.
        if self._unstored is None or self._renewal_reason(self._unstored):
            self._unstored = pki.issue(self._names.dns_names, self._lifetime, self._now())
        fresh = self._unstored
        if await self._add_to_bundles(fresh.ca):
            await asyncio.sleep(PROPAGATION_DELAY)
        await self._store(secret, fresh)
        self._unstored = None
        log.info("issued a new webhook certificate, valid until %s", self._now() + self._lifetime)

    def _renewal_reason(self, pair: pki.KeyPair | None) -> str:
        if pair is None:
            return "tls.crt, tls.key or ca.crt is missing"
        return pki.renewal_reason(pair, self._names.dns_names, self._now())

    async def _ensure_trusted(self, secret: Object, pair: pki.KeyPair) -> None:
        """Ensure that every CA bundle has the CA of the stored pair, and no other CA if the annotation is set."""
        exclusive = revocation_requested(secret)
        await self._add_to_bundles(pair.ca, exclusive=exclusive)
        if exclusive:
            version = secret["metadata"]["resourceVersion"]
            done = {"metadata": {"annotations": {REVOKE_ANNOTATION: None}, "resourceVersion": version}}
            await self._client.patch(self._secret, done)
            log.info("revoked other certificate authorities: the API server trusts only the one in %s", self._secret)

    async def _add_to_bundles(self, ca: bytes, *, exclusive: bool = False) -> bool:
        """Add a CA to every CA bundle; if `exclusive`, remove the others.

        Returns True if a webhook had a CA bundle before: webhook pods may already be serving.
        """
        serving = False
        for key in self._configurations:
            live = await self._client.get(key)
            if live is None:
                log.info("%s does not exist; its CA bundle is not updated", key)
                continue
            serving = serving or any(webhook["clientConfig"].get("caBundle") for webhook in live.get("webhooks") or ())
            patch = ca_bundle_patch(live, ca, self._now(), exclusive=exclusive)
            if patch:
                await self._client.patch(key, patch, JSON_PATCH)
        return serving

    async def _store(self, live: Object | None, pair: pki.KeyPair) -> None:
        secret = secret_of(self._names, pair)
        if live is None:
            await self._client.create(self._secret, secret)
            return
        # The resourceVersion prevents overwriting a newer pair that another process wrote.
        secret["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        await self._client.patch(self._secret, {"metadata": secret["metadata"], "data": secret["data"]})


def ca_bundle_patch(live: Object, ca: bytes, now: datetime, *, exclusive: bool = False) -> list[dict[str, Any]]:
    """The JSON patch that adds `ca` to every CA bundle of a webhook configuration; empty if nothing changes.

    If `exclusive`, the patch also removes every other CA.
    """
    patch: list[dict[str, Any]] = []
    for index, webhook in enumerate(live.get("webhooks") or ()):
        known = base64.b64decode(webhook["clientConfig"].get("caBundle") or "")
        bundle = pki.ca_bundle(ca, b"" if exclusive else known, now)
        if bundle != known:
            path = f"/webhooks/{index}/clientConfig/caBundle"
            patch.append({"op": "add", "path": path, "value": base64.b64encode(bundle).decode()})
    version = live["metadata"]["resourceVersion"]
    return [{"op": "replace", "path": "/metadata/resourceVersion", "value": version}, *patch] if patch else []


def revocation_requested(secret: Object) -> bool:
    """True if the Secret's annotation requests that no other CA is trusted."""
    return nested_map(secret, "metadata", "annotations").get(REVOKE_ANNOTATION) == "true"


def key_pair_of(secret: Object | None) -> pki.KeyPair | None:
    """The pair in a Secret, or None if it has no readable pair."""
    data: dict[str, str] = (secret or {}).get("data") or {}
    try:
        return pki.KeyPair(*(base64.b64decode(data[name]) for name in ("tls.crt", "tls.key", "ca.crt")))
    except (KeyError, ValueError):
        return None


def secret_of(names: WebhookNames, pair: pki.KeyPair) -> Object:
    """The Secret that the webhook pods mount."""
    files = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": pair.ca}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {
            "name": names.secret,
            "namespace": names.namespace,
            "labels": {"app.kubernetes.io/managed-by": "memcached-operator"},
        },
        "data": {name: base64.b64encode(content).decode() for name, content in files.items()},
    }
