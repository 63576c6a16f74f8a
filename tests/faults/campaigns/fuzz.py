"""Fuzz: random objects and updates, reviewed by the API server's schema and rules alone, and by our process alone."""

import asyncio
import json
import re
from base64 import b64decode
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import aiohttp
import msgspec

from faults import limits
from faults.case import Case, References, in_gate
from faults.objects import objects
from faults.registration import error_of, resource_of
from faults.sandbox import FailedError, Sandbox
from faults.stored import store, unchecked_version, update_error
from faults.webhook import KINDS, MUTATE, VALIDATE, client_context, client_session, review, send_review, webhook
from faults.workloads import new_object
from memcached_api.kind import Kind
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import Object, Resource
from support.reviewing import patched

Results = list[str | BaseException]

SEEDS = {"memcacheds": 40, "appservices": 20}
COUNT = 250
"""Objects per seed: 15,000 in total."""
SMALL = 100
"""Objects in the short cases."""
UPDATES = {"memcacheds": 0.4}
"""Updates per object, by kind: 4,000 in total."""
PARALLEL = 8
REJECTED = (400, 422)
"""Codes with which the API server rejects an invalid object."""
ALLOWED, DENIED = "allowed", "denied"
KNOWN_DIFFERENCES = ("expected int, got float64", "expected XIntOrString value to be either a string or integer")
WHOLE_AS_FLOAT = re.compile(r"\d\.0\b")
"""A whole number written as 3.0 in JSON: the API server may reject it although admission allows it.

The schema accepts it as an integer, the CEL rules do not. YAML readers do not produce 3.0, and the API server's reviews
contain 3.
"""


@dataclass(frozen=True)
class Reviewers:
    """The API server and the webhook, which must agree."""

    sandbox: Sandbox
    kind: Kind[Any]
    session: aiohttp.ClientSession
    url: str
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PARALLEL))

    async def create(self, obj: Object) -> str:
        """Review an object that is created."""
        async with self.slots:
            return await self._compared(await _by_api_server(self.sandbox, self.kind, obj), obj)

    async def update(self, resource: Resource, number: int, old: Object, new: Object) -> str:
        """Store an object without checking the rules, then review its update."""
        async with self.slots:
            stored = await store(self.sandbox, resource, f"cache-{number}", old)
            by_server = _result(await update_error(self.sandbox, resource, stored, new), new)
            return await self._compared(by_server, *(self._reviewed(spec) for spec in (new, stored["spec"])))

    def _reviewed(self, spec: Object) -> Object:
        return new_object(resource_of(self.kind), self.sandbox.namespace, "cache", spec)

    async def _compared(self, by_server: tuple[str, str], obj: Object, old: Object | None = None) -> str:
        """The common result; raises FailedError if the webhook's differs, before or after defaulting."""
        by_webhook = await _by_webhook(self.session, self.url, self.kind, obj, old)
        defaulted = await _with_defaults(self.session, self.url, self.kind, obj, old)
        after_defaulting = await _by_webhook(self.session, self.url, self.kind, defaulted, old)
        known = any(part in by_server[1] for part in KNOWN_DIFFERENCES) and WHOLE_AS_FLOAT.search(json.dumps(obj))
        if by_server[0] == by_webhook[0] == after_defaulting[0] or (known and by_webhook[0] == after_defaulting[0]):
            return by_server[0]
        details = f"API server {by_server}, webhook {by_webhook}, defaulted {after_defaulting}: {json.dumps(obj)}"
        raise FailedError(details + (f", stored: {json.dumps(old)}" if old else ""))


async def check_agreement(sandbox: Sandbox, _: References, kind: Kind[Any], number: int, count: int) -> None:
    """Check that the API server and the webhook agree on each object and update, before and after defaulting."""
    drawn = objects(kind, number, count)
    async with webhook(sandbox) as admission, client_session(client_context(admission.pair.ca)) as session:
        reviewers = Reviewers(sandbox, kind, session, admission.url)
        _check_results(f"objects of seed {number}", await _all(reviewers.create(obj) for obj in drawn))
        pairs = limits.updates(number, int(count * UPDATES.get(kind.plural, 0)))
        if pairs:
            _check_results(f"updates of seed {number}", await _updates(reviewers, pairs))
        sandbox.check(not admission.failures(), f"the admission process failed: {admission.failures()}")


async def _updates(reviewers: Reviewers, pairs: Sequence[tuple[Object, Object]]) -> Results:
    async with unchecked_version(reviewers.sandbox, reviewers.kind) as resource:
        return await _all(reviewers.update(resource, number, *pair) for number, pair in enumerate(pairs))


async def _all(reviews: Iterable[Coroutine[Any, Any, str]]) -> Results:
    return await asyncio.gather(*reviews, return_exceptions=True)


def _check_results(what: str, results: Results) -> None:
    different = [result for result in results if isinstance(result, BaseException)]
    for error in different:
        if not isinstance(error, FailedError):
            raise error  # the test itself failed
    if different:
        raise FailedError(f"different results for {len(different)} of {len(results)} {what}: {different[0]}")
    both = {result: results.count(result) for result in (ALLOWED, DENIED)}
    if min(both.values()) <= len(results) / 10:
        raise FailedError(f"too few allowed or denied {what}: {both}")


async def _by_api_server(sandbox: Sandbox, kind: Kind[Any], obj: Object) -> tuple[str, str]:
    """The result of schema and CEL rules: no webhook is registered for this namespace."""
    namespaced = {**obj, "metadata": {**obj["metadata"], "namespace": sandbox.namespace}}
    resource = resource_of(kind)
    version, path = obj["apiVersion"].rpartition("/")[2], resource.path(sandbox.namespace)
    path = path.replace(f"/{kind.group}/{kind.versions[0]}/", f"/{kind.group}/{version}/")
    # As when storing: both ignore unknown fields.
    params = {"dryRun": "All", "fieldValidation": "Ignore"}
    body = msgspec.Raw(json.dumps(namespaced).encode())
    error = await error_of(lambda: sandbox.client.request("POST", path, body, params=params))
    return _result(error, obj)


def _result(error: ApiError | None, obj: Object) -> tuple[str, str]:
    if error is not None and error.code not in REJECTED:
        raise FailedError(f"the API server returned {error.code} {error} for {json.dumps(obj)}")
    return (DENIED, str(error)) if error else (ALLOWED, "")


async def _by_webhook(
    session: aiohttp.ClientSession, url: str, kind: Kind[Any], obj: Object, old: Object | None
) -> tuple[str, str]:
    code, response = await send_review(session, url, VALIDATE, kind, review(kind, obj, old))
    if code != 200:
        raise FailedError(f"the webhook returned {code} {response} for {json.dumps(obj)}")
    return (ALLOWED, "") if response["allowed"] else (DENIED, response["status"]["message"])


async def _with_defaults(
    session: aiohttp.ClientSession, url: str, kind: Kind[Any], obj: Object, old: Object | None
) -> Object:
    """The object with the webhook's defaults; defaulting must never deny."""
    code, response = await send_review(session, url, MUTATE, kind, review(kind, obj, old))
    if code != 200 or not response["allowed"]:
        raise FailedError(f"the webhook returned {code} {response} for {json.dumps(obj)}")
    return patched(obj, json.loads(b64decode(response.get("patch", "W10="))))


def cases() -> list[Case]:
    """All seeds of both kinds, and a short case of each with another seed."""
    found: list[Case] = []
    for kind in KINDS:
        for number in range(SEEDS[kind.plural]):
            run = partial(check_agreement, kind=kind, number=number, count=COUNT)
            found.append(Case(f"fuzz/{kind.plural}/{number}", run))
        few = partial(check_agreement, kind=kind, number=SEEDS[kind.plural], count=SMALL)
        found.append(Case(f"fuzz/{kind.plural}/few", few))
    return in_gate(found, "fuzz/memcacheds/few", "fuzz/appservices/few")
