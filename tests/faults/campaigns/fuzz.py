"""Fuzz: random objects, judged by the API server's schema and CEL alone, and by the admission process alone."""

import asyncio
import json
import os
import re
import subprocess
import sys
from base64 import b64decode
from copy import deepcopy
from functools import partial
from typing import Any

import aiohttp
import msgspec

from faults.case import Case, References
from faults.registration import complaint, resource_of
from faults.stage import FailedError, Stage
from faults.webhook import KINDS, MUTATE, VALIDATE, asked, caller, review, trusting, webhook
from memcached_api.kinds import Kind
from memcached_operator.kube.resource import Object

SEEDS = 20
COUNT = 250
"""Objects of each kind and seed: 10,000 in all."""
SMALL = 100
"""Objects in the cases of the gate."""
AT_ONCE = 8
REFUSED = (400, 422)
"""Codes by which the API server says that an object is no good."""
ALLOWED, BAD = "allowed", "refused"
KNOWN = ("expected int, got float64", "expected XIntOrString value to be either a string or integer")
WHOLE = re.compile(r"\d\.0\b")
"""What the API server says where it may refuse what admission allows: a whole number that is written as 3.0, in JSON.

Its schema takes it for an integer, its CEL does not. Clients that read YAML write 3; and admission never sees 3.0, for
the API server writes 3 into its reviews.
"""


async def agreed(stage: Stage, _: References, kind: Kind[Any], number: int, count: int) -> None:
    """Both judge each object alike, and defaulting changes no verdict."""
    made = await _made(kind, number, count)
    turns = asyncio.Semaphore(AT_ONCE)
    async with webhook(stage) as here, caller(trusting(here.pair.ca)) as session:

        async def judged(obj: Object) -> str:
            async with turns:
                theirs = await _by_api_server(stage, kind, obj)
                ours = await _by_webhook(session, here.url, kind, obj)
                filled = await _by_webhook(session, here.url, kind, await _filled(session, here.url, kind, obj))
            known = any(words in theirs[1] for words in KNOWN) and WHOLE.search(json.dumps(obj))
            if theirs[0] == ours[0] == filled[0] or (known and ours[0] == filled[0]):
                return theirs[0]
            told = f"the API server {theirs}, the webhook {ours}, after defaulting {filled}: {json.dumps(obj)}"
            raise FailedError(f"seed {number}: {told}")

        verdicts = await asyncio.gather(*(judged(obj) for obj in made), return_exceptions=True)
        stage.holds(not here.failures(), f"admission itself: {here.failures()}")
    wrong = [verdict for verdict in verdicts if isinstance(verdict, BaseException)]
    if wrong:
        raise FailedError(f"{len(wrong)} of {count} are judged differently: {wrong[0]}")
    both = {verdict: verdicts.count(verdict) for verdict in (ALLOWED, BAD)}
    stage.holds(min(both.values()) > count / 10, f"the objects are too much alike: {both}")


async def _made(kind: Kind[Any], number: int, count: int) -> list[Object]:
    """Random objects, from a process of its own: hypothesis has the dice of the whole process in its hands."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "faults.objects", kind.plural, str(number), str(count)),
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    text, _ = await process.communicate()
    return [json.loads(line) for line in text.splitlines()]


async def _by_api_server(stage: Stage, kind: Kind[Any], obj: Object) -> tuple[str, str]:
    """What schema and CEL say: no webhook is registered for the namespace."""
    mine = {**obj, "metadata": {**obj["metadata"], "namespace": stage.namespace}}
    resource = resource_of(kind)
    version, path = obj["apiVersion"].rpartition("/")[2], resource.path(stage.namespace)
    path = path.replace(f"/{kind.group}/{kind.versions[0]}/", f"/{kind.group}/{version}/")
    # As it would be stored: fields that nobody knows are dropped, by both.
    params = {"dryRun": "All", "fieldValidation": "Ignore"}
    body = msgspec.Raw(json.dumps(mine).encode())
    said = await complaint(lambda: stage.client.request("POST", path, body, params=params))
    if said is not None and said.code not in REFUSED:
        raise FailedError(f"the API server answered {said.code} {said} to {json.dumps(obj)}")
    return (BAD, str(said)) if said else (ALLOWED, "")


async def _by_webhook(session: aiohttp.ClientSession, url: str, kind: Kind[Any], obj: Object) -> tuple[str, str]:
    code, response = await asked(session, url, VALIDATE, kind, review(kind, obj))
    if code != 200:
        raise FailedError(f"the webhook answered {code} {response} to {json.dumps(obj)}")
    return (ALLOWED, "") if response["allowed"] else (BAD, response["status"]["message"])


async def _filled(session: aiohttp.ClientSession, url: str, kind: Kind[Any], obj: Object) -> Object:
    """The object with the defaults that the webhook works in, which never refuses one."""
    code, response = await asked(session, url, MUTATE, kind, review(kind, obj))
    if code != 200 or not response["allowed"]:
        raise FailedError(f"the webhook answered {code} {response} to {json.dumps(obj)}")
    found = deepcopy(obj)
    for step in json.loads(b64decode(response.get("patch", "W10="))):
        *way, last = step["path"].split("/")[1:]
        parent = found
        for name in way:
            parent = parent[name]
        parent[last] = step["value"]
    return found


def cases() -> list[Case]:
    """So many seeds of both kinds; a few objects of one more for the gate."""
    found: list[Case] = []
    for kind in KINDS:
        for number in range(SEEDS):
            play = partial(agreed, kind=kind, number=number, count=COUNT)
            found.append(Case(f"fuzz/{kind.plural}/{number}", play))
        few = partial(agreed, kind=kind, number=SEEDS, count=SMALL)
        found.append(Case(f"fuzz/{kind.plural}/few", few, gate=True))
    return found
