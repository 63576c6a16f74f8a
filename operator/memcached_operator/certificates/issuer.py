"""Keeps the webhook's Secret and the CA bundles of the webhook configurations; run by the leader only.

Order matters when a pair is replaced: first every API server trusts the new CA beside the old one, then the new leaf
goes into the Secret. So at no time does a webhook pod serve a leaf that is not trusted, old or new.

An old CA stays trusted until it expires. The annotation REVOKE ends that at once.
"""

import asyncio
import base64
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from memcached_operator.certificates import pki
from memcached_operator.kube.client import JSON_PATCH, ApiError, Client
from memcached_operator.kube.resource import SECRETS, Key, Object, Resource, mapping

log = logging.getLogger(__name__)

MUTATING = Resource(
    "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"
)
VALIDATING = Resource(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"
)

CHECK_PERIOD = 10.0
"""Seconds between two looks at the Secret and the webhook configurations: three reads."""

TRUST_PERIOD = 2.0
"""Seconds between trusting a new CA and handing out its leaf: API servers take up a configuration by watch."""

REVOKE = "memcached-operator.example.com/revoke-other-authorities"
"""Annotation of the Secret. With the value `true`, the webhooks trust the CA of this Secret and no other one, from the
next check on. The issuer then removes the annotation."""


@dataclass(frozen=True)
class Names:
    """Where the pair goes, and for whom it is made out."""

    namespace: str
    secret: str
    service: str
    mutating: str
    validating: str

    @property
    def dns(self) -> list[str]:
        """The name under which the API server calls the webhook, and the longer form."""
        return [f"{self.service}.{self.namespace}.svc", f"{self.service}.{self.namespace}.svc.cluster.local"]


class Issuer:
    """One issuer per operator installation."""

    def __init__(self, client: Client, names: Names, lifetime: timedelta = pki.LIFETIME) -> None:
        self._client = client
        self._names = names
        self._lifetime = lifetime
        self._fresh: pki.Pair | None = None
        self._secret = Key(SECRETS, names.namespace, names.secret)
        self._configurations = [Key(MUTATING, "", names.mutating), Key(VALIDATING, "", names.validating)]
        self._now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def run(self) -> None:
        """Check for ever; what fails is logged and tried again."""
        while True:
            try:
                await self.check()
            except ApiError as error:
                log.warning("webhook certificate: %s; trying again in %.0f s", error, CHECK_PERIOD)
            await asyncio.sleep(CHECK_PERIOD)

    async def check(self) -> None:
        """Bring Secret and bundles up to date; nothing is written where nothing is due."""
        secret = await self._client.get(self._secret)
        pair = pair_of(secret)
        if secret is not None and pair is not None and not pki.is_due(pair, self._names.dns, self._now()):
            await self._keep(secret, pair)
            return
        # Kept until it is stored: each CA that is trusted and then thrown away would stay in the bundles for its life.
        if self._fresh is None or pki.is_due(self._fresh, self._names.dns, self._now()):
            self._fresh = pki.issue(self._names.dns, self._lifetime, self._now())
        fresh = self._fresh
        if await self._trust(fresh.ca):
            await asyncio.sleep(TRUST_PERIOD)
        await self._cache(secret, fresh)
        self._fresh = None
        log.info("made a new webhook certificate, valid until %s", self._now() + self._lifetime)

    async def _keep(self, secret: Object, pair: pki.Pair) -> None:
        """Have every webhook trust the CA of the stored pair; and no other one, where the annotation asks for that."""
        alone = revokes(secret)
        await self._trust(pair.ca, alone=alone)
        if alone:
            version = secret["metadata"]["resourceVersion"]
            done = {"metadata": {"annotations": {REVOKE: None}, "resourceVersion": version}}
            await self._client.patch(self._secret, done)
            log.info("revoked: the webhooks trust the certificate authority in %s and no other one", self._secret)

    async def _trust(self, ca: bytes, *, alone: bool = False) -> bool:
        """Have every webhook trust a CA, `alone` or beside those it trusts.

        True where one of them trusted another before, so pods may serve by now.
        """
        serving = False
        for key in self._configurations:
            live = await self._client.get(key)
            if live is None:
                log.info("%s does not exist: nothing to trust there", key)
                continue
            serving = serving or any(webhook["clientConfig"].get("caBundle") for webhook in live.get("webhooks") or ())
            patch = bundle_patch(live, ca, self._now(), alone=alone)
            if patch:
                await self._client.patch(key, patch, JSON_PATCH)
        return serving

    async def _cache(self, live: Object | None, pair: pki.Pair) -> None:
        secret = secret_of(self._names, pair)
        if live is None:
            await self._client.create(self._secret, secret)
            return
        # With the resourceVersion that was read: somebody else's newer pair is not overwritten.
        secret["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        await self._client.patch(self._secret, {"metadata": secret["metadata"], "data": secret["data"]})


def bundle_patch(live: Object, ca: bytes, now: datetime, *, alone: bool = False) -> list[dict[str, Any]]:
    """The JSON patch that makes every webhook of a configuration trust `ca`, `alone` or beside what it trusts.

    Empty if it does.
    """
    patch: list[dict[str, Any]] = []
    for index, webhook in enumerate(live.get("webhooks") or ()):
        known = base64.b64decode(webhook["clientConfig"].get("caBundle") or "")
        wanted = pki.trusted(ca, b"" if alone else known, now)
        if wanted != known:
            path = f"/webhooks/{index}/clientConfig/caBundle"
            patch.append({"op": "add", "path": path, "value": base64.b64encode(wanted).decode()})
    version = live["metadata"]["resourceVersion"]
    return [{"op": "replace", "path": "/metadata/resourceVersion", "value": version}, *patch] if patch else []


def revokes(secret: Object) -> bool:
    """True where the Secret's annotation asks that no other CA be trusted."""
    return mapping(secret, "metadata", "annotations").get(REVOKE) == "true"


def pair_of(secret: Object | None) -> pki.Pair | None:
    """The pair in a Secret, or None where it holds none that can be read."""
    data: dict[str, str] = (secret or {}).get("data") or {}
    try:
        return pki.Pair(*(base64.b64decode(data[name]) for name in ("tls.crt", "tls.key", "ca.crt")))
    except (KeyError, ValueError):
        return None


def secret_of(names: Names, pair: pki.Pair) -> Object:
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
