"""Bodies: deep, huge, and costly to answer. tests/unit/webhooks/test_review.py tests random and broken ones."""

import json
from collections.abc import Iterator

from faults.campaigns.port.setup import MAX_BODY, MAX_CPU, VALID, Setup
from faults.webhook import JSON, KINDS, PATHS, VALIDATE, post, review
from memcached_api.memcached.types import MEMCACHED
from memcached_operator.kube.resource import Object
from memcached_webhooks.admission import path_of
from memcached_webhooks.review import MAX_RESPONSE_SIZE


def _bytes(**fields: object) -> bytes:
    """A review of the valid object with other fields in its spec."""
    return json.dumps(review(MEMCACHED, {**VALID, "spec": {"size": 0, **fields}})).encode()


def _nested() -> Iterator[bytes]:
    for depth in (100, 900, 1100, 10_000, 100_000, 2_000_000):
        for opened, closed in ((b"[", b"]"), (b'{"a":', b"}")):
            if depth * (len(opened) + len(closed)) > MAX_BODY:
                continue
            value = opened * depth + b"1" + closed * depth
            yield opened * depth
            yield value
            yield _bytes(cache="DEEP").replace(b'"DEEP"', value)
            yield _bytes(unknown="DEEP").replace(b'"DEEP"', value)


async def deep_nesting(setup: Setup) -> None:
    """Nested lists and objects, up to two million levels."""
    for data in _nested():
        await setup.check_rejected(data)
        setup.check_memory()


async def huge_values(setup: Setup) -> None:
    """Strings, numbers, lists and maps up to the maximum length of a body, and beyond."""
    text = "x" * (MAX_BODY - 10_000)
    many = [{"name": "="}] * 150_000
    values: tuple[Object, ...] = (
        *({name: text} for name in ("image", "imagePullPolicy", "size", "unknown")),
        {"cache": {"memory": text}},
        {"cache": {"memory": "9" * 3_000_000}},
        {"imagePullSecrets": [{"name": text}]},
        {"imagePullSecrets": [{}] * 1_000_000},
        {"imagePullSecrets": many},
        {"resources": {"limits": {text: 1}}},
        {"resources": {"limits": {f"bad-{number}": -1 for number in range(150_000)}}},
    )
    for fields in values:
        used = setup.webhook.cpu()
        await setup.check_rejected(_bytes(**fields))
        used = setup.webhook.cpu() - used
        setup.sandbox.check(used < MAX_CPU, f"{list(fields)} takes {used:.1f} s of CPU")
        setup.check_memory()
    for number in ("9" * 4000, "9" * 5000, "-" + "9" * 3_000_000, "1e400", "1" + "0" * 400, "0." + "1" * 1_000_000):
        for field in ("size", "cache", "unknown"):
            await setup.check_rejected(_bytes(**{field: "NUMBER"}).replace(b'"NUMBER"', number.encode()))
    await setup.check_rejected(_bytes(unknown="x" * MAX_BODY))
    await setup.check_rejected(b" " * (MAX_BODY + 1))
    setup.check_memory()


def _costly() -> Iterator[bytes]:
    """Specs of up to two megabytes that could need many times their size in memory, or quadratic time."""
    yield b'{"size":"x","x":[' + b",".join([b'{"":[]}'] * 250_000) + b"]}"
    yield b'{"size":1,"imagePullSecrets":[' + b",".join([b"{}"] * 650_000) + b"]}"
    yield b'{"image":"a","envs":[' + b",".join([b'{"name":"A"}'] * 20_000) + b"]}"
    for count in (1_700, 40_000):
        names = [b'{"name":"tcp-1-%d"}' % number for number in range(2, count)]
        yield b'{"image":"a","ports":[' + b",".join([*names, b'{"name":"tcp-1"}', *[b'{"port":1}'] * count]) + b"]}"


async def costly_reviews(setup: Setup) -> None:
    """Reviews on every path that are expensive to decode, to default, or to validate."""
    for path in PATHS:
        kind = next(kind for kind in KINDS if path.endswith(kind.name.lower()))
        template = json.dumps(review(kind, {"metadata": {"name": "app"}, "spec": "SPEC"})).encode()
        for spec in _costly():
            used = setup.webhook.cpu()
            await post(setup.session, setup.webhook.url, path, template.replace(b'"SPEC"', spec))
            used = setup.webhook.cpu() - used
            setup.sandbox.check(used < MAX_CPU, f"{spec[:40]!r}… on {path} takes {used:.1f} s of CPU")
            setup.check_memory()
            await setup.check_reviews()


async def many_errors(setup: Setup) -> None:
    """Objects of three megabytes with as many errors as possible: the response is in time and of limited size."""
    kind = KINDS[1]
    specs: tuple[Object, ...] = (
        {"image": "a", "ports": [{"port": 0, "nodePort": 1, "name": "="}] * 60_000},
        {"image": "a", "envs": [{"name": "=", "valueFrom": {}}] * 80_000},
        {"image": "a", "resources": {"limits": {f"bad-{number}": -1 for number in range(150_000)}}},
    )
    for spec in specs:
        used = setup.webhook.cpu()
        body = json.dumps(review(kind, {"metadata": {"name": "app"}, "spec": spec})).encode()
        async with setup.session.post(setup.webhook.url + path_of(VALIDATE, kind), data=body, headers=JSON) as response:
            payload = await response.read()
        used = setup.webhook.cpu() - used
        setup.sandbox.check(b'"allowed":false' in payload, f"not denied: {payload[:200]!r}")
        setup.sandbox.check(used < MAX_CPU, f"the response takes {used:.1f} s of CPU")
        setup.sandbox.check(len(payload) <= MAX_RESPONSE_SIZE, f"the response has {len(payload)} bytes")
        setup.check_memory()
