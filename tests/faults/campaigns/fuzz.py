"""Fuzz: random objects, reviewed by the API server's schema and CEL rules alone, and by the admission process alone."""

import asyncio
import json
import os
import re
import subprocess
import sys
from base64 import b64decode
from functools import partial
from typing import Any

import aiohttp
import msgspec

from faults.case import Case, References
from faults.registration import error_of, resource_of
from faults.sandbox import FailedError, Sandbox
from faults.webhook import KINDS, MUTATE, VALIDATE, client_context, client_session, review, send_review, webhook
from memcached_api.kinds import Kind
from memcached_operator.kube.resource import Object
from support.reviewing import patched

SEEDS = 20
COUNT = 250
"""Objects per kind and seed: 10,000 in total."""
SMALL = 100
"""Objects in the cases of the gate."""
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


async def check_agreement(sandbox: Sandbox, _: References, kind: Kind[Any], number: int, count: int) -> None:
    """Check that the API server and the webhook agree on each object, before and after defaulting."""
    drawn = await _random_objects(kind, number, count)
    slots = asyncio.Semaphore(PARALLEL)
    async with webhook(sandbox) as admission, client_session(client_context(admission.pair.ca)) as session:

        async def review_both(obj: Object) -> str:
            async with slots:
                by_server = await _by_api_server(sandbox, kind, obj)
                by_webhook = await _by_webhook(session, admission.url, kind, obj)
                after_defaulting = await _by_webhook(
                    session, admission.url, kind, await _with_defaults(session, admission.url, kind, obj)
                )
            known = any(part in by_server[1] for part in KNOWN_DIFFERENCES) and WHOLE_AS_FLOAT.search(json.dumps(obj))
            if by_server[0] == by_webhook[0] == after_defaulting[0] or (known and by_webhook[0] == after_defaulting[0]):
                return by_server[0]
            details = f"API server {by_server}, webhook {by_webhook}, defaulted {after_defaulting}: {json.dumps(obj)}"
            raise FailedError(f"seed {number}: {details}")

        results = await asyncio.gather(*(review_both(obj) for obj in drawn), return_exceptions=True)
        sandbox.check(not admission.failures(), f"the admission process failed: {admission.failures()}")
    different = [result for result in results if isinstance(result, BaseException)]
    for error in different:
        if not isinstance(error, FailedError):
            raise error  # the test itself failed
    if different:
        raise FailedError(f"different results for {len(different)} of {count} objects: {different[0]}")
    both = {result: results.count(result) for result in (ALLOWED, DENIED)}
    sandbox.check(min(both.values()) > count / 10, f"too few allowed or denied objects: {both}")


async def _random_objects(kind: Kind[Any], number: int, count: int) -> list[Object]:
    """Random objects, from a separate process, because hypothesis seeds the random generator of the whole process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "faults.objects", kind.plural, str(number), str(count)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    text, errors = await process.communicate()
    found = [json.loads(line) for line in text.splitlines()]
    if process.returncode or len(found) != count:
        raise RuntimeError(f"want {count} random objects, got {len(found)}: {errors.decode()[-300:]}")
    return found


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
    if error is not None and error.code not in REJECTED:
        raise FailedError(f"the API server returned {error.code} {error} for {json.dumps(obj)}")
    return (DENIED, str(error)) if error else (ALLOWED, "")


async def _by_webhook(session: aiohttp.ClientSession, url: str, kind: Kind[Any], obj: Object) -> tuple[str, str]:
    code, response = await send_review(session, url, VALIDATE, kind, review(kind, obj))
    if code != 200:
        raise FailedError(f"the webhook returned {code} {response} for {json.dumps(obj)}")
    return (ALLOWED, "") if response["allowed"] else (DENIED, response["status"]["message"])


async def _with_defaults(session: aiohttp.ClientSession, url: str, kind: Kind[Any], obj: Object) -> Object:
    """The object with the webhook's defaults; defaulting must never deny."""
    code, response = await send_review(session, url, MUTATE, kind, review(kind, obj))
    if code != 200 or not response["allowed"]:
        raise FailedError(f"the webhook returned {code} {response} for {json.dumps(obj)}")
    return patched(obj, json.loads(b64decode(response.get("patch", "W10="))))


def cases() -> list[Case]:
    """All seeds of both kinds; for the gate, a few objects with another seed."""
    found: list[Case] = []
    for kind in KINDS:
        for number in range(SEEDS):
            run = partial(check_agreement, kind=kind, number=number, count=COUNT)
            found.append(Case(f"fuzz/{kind.plural}/{number}", run))
        few = partial(check_agreement, kind=kind, number=SEEDS, count=SMALL)
        found.append(Case(f"fuzz/{kind.plural}/few", few, gate=True))
    return found
