"""Bodies: random, broken, deep, huge, of another type, compressed."""

import asyncio
import gzip
import json
import random
import zlib
from collections.abc import Iterator

from faults.campaigns.port.scene import ERRORS, GOOD, LARGEST, MOST_WORK, PATH, SEED, Scene
from faults.stage import FailedError
from faults.webhook import JSON, KINDS, PATHS, VALIDATE, review, sent
from memcached_api.memcached import MEMCACHED
from memcached_api.values import nested_field
from memcached_operator.kube.resource import Object
from memcached_webhooks.admission import path_of
from memcached_webhooks.review import MAX_RESPONSE_SIZE


def _bytes(**fields: object) -> bytes:
    """A review of the good object, with other fields in its spec."""
    return json.dumps(review(MEMCACHED, {**GOOD, "spec": {"size": 0, **fields}})).encode()


async def random_bytes(scene: Scene) -> None:
    """Bodies of chance."""
    dice = random.Random(SEED)  # noqa: S311 - the same ones each time
    for _ in range(500):
        await scene.refused(dice.randbytes(dice.randrange(2000)), dice.choice(PATHS))


async def broken_reviews(scene: Scene) -> None:
    """Reviews of a bad object with bytes changed, lost, doubled and put in."""
    dice = random.Random(SEED)  # noqa: S311 - the same ones each time
    good = _bytes()
    for _ in range(1000):
        data = bytearray(good)
        for _ in range(dice.randrange(1, 4)):
            at = dice.randrange(len(data))
            piece = dice.choice((b"", dice.randbytes(1), data[at : at + 9] * 2, b'"', b"{", b"null", b"\xff"))
            data[at : at + dice.randrange(3)] = piece
        code, response = await sent(scene.session, scene.webhook.url, PATH, bytes(data))
        scene.stage.holds(code in (200, *ERRORS), f"{code} {response} for {bytes(data)!r}")
        if code == 200 and response["allowed"]:
            _still_a_good_one(bytes(data))


def _still_a_good_one(data: bytes) -> None:
    """What was allowed is a review of an object that may be allowed. Raises FailedError where it is not."""
    request = nested_field(json.loads(data.decode(errors="replace")), "request")
    judged = nested_field(request, "operation") in ("CREATE", "UPDATE") and not nested_field(request, "subResource")
    if judged and nested_field(request, "object", "spec", "size") in (0, "0"):
        raise FailedError(f"allowed: {data!r}")


def _nested() -> Iterator[bytes]:
    for depth in (100, 900, 1100, 10_000, 100_000, 2_000_000):
        for opened, closed in ((b"[", b"]"), (b'{"a":', b"}")):
            if depth * (len(opened) + len(closed)) > LARGEST:
                continue
            value = opened * depth + b"1" + closed * depth
            yield opened * depth
            yield value
            yield _bytes(cache="DEEP").replace(b'"DEEP"', value)
            yield _bytes(unknown="DEEP").replace(b'"DEEP"', value)


async def deep_nesting(scene: Scene) -> None:
    """Lists in lists and objects in objects, up to two million deep."""
    for data in _nested():
        await scene.refused(data)
        scene.measured()


async def huge_values(scene: Scene) -> None:
    """Texts, numbers, lists and maps as large as a body may be, and beyond."""
    text = "x" * (LARGEST - 10_000)
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
        used = scene.webhook.cpu()
        await scene.refused(_bytes(**fields))
        used = scene.webhook.cpu() - used
        scene.stage.holds(used < MOST_WORK, f"{list(fields)} takes {used:.1f} s of CPU")
        scene.measured()
    for number in ("9" * 4000, "9" * 5000, "-" + "9" * 3_000_000, "1e400", "1" + "0" * 400, "0." + "1" * 1_000_000):
        for field in ("size", "cache", "unknown"):
            await scene.refused(_bytes(**{field: "NUMBER"}).replace(b'"NUMBER"', number.encode()))
    await scene.refused(_bytes(unknown="x" * LARGEST))
    await scene.refused(b" " * (LARGEST + 1))
    scene.measured()


def _costly() -> Iterator[bytes]:
    """Specs of up to two megabytes that would cost many times their size in memory, or the square of it in time."""
    yield b'{"size":"x","x":[' + b",".join([b'{"":[]}'] * 250_000) + b"]}"
    yield b'{"size":1,"imagePullSecrets":[' + b",".join([b"{}"] * 650_000) + b"]}"
    yield b'{"image":"a","envs":[' + b",".join([b'{"name":"A"}'] * 20_000) + b"]}"
    for count in (1_700, 40_000):
        names = [b'{"name":"tcp-1-%d"}' % number for number in range(2, count)]
        yield b'{"image":"a","ports":[' + b",".join([*names, b'{"name":"tcp-1"}', *[b'{"port":1}'] * count]) + b"]}"


async def costly_reviews(scene: Scene) -> None:
    """Reviews on every path that are expensive to read, to complete with defaults, or to examine."""
    for path in PATHS:
        kind = next(kind for kind in KINDS if path.endswith(kind.name.lower()))
        frame = json.dumps(review(kind, {"metadata": {"name": "app"}, "spec": "SPEC"})).encode()
        for spec in _costly():
            used = scene.webhook.cpu()
            await sent(scene.session, scene.webhook.url, path, frame.replace(b'"SPEC"', spec))
            used = scene.webhook.cpu() - used
            scene.stage.holds(used < MOST_WORK, f"{spec[:40]!r}… on {path} takes {used:.1f} s of CPU")
            scene.measured()
            await scene.well()


async def many_faults(scene: Scene) -> None:
    """Objects of three megabytes, as many faults as fit in: an answer in time, and of a size one can read."""
    kind = KINDS[1]
    specs: tuple[Object, ...] = (
        {"image": "a", "ports": [{"port": 0, "nodePort": 1, "name": "="}] * 60_000},
        {"image": "a", "envs": [{"name": "=", "valueFrom": {}}] * 80_000},
        {"image": "a", "resources": {"limits": {f"bad-{number}": -1 for number in range(150_000)}}},
    )
    for spec in specs:
        used = scene.webhook.cpu()
        body = json.dumps(review(kind, {"metadata": {"name": "app"}, "spec": spec})).encode()
        async with scene.session.post(scene.webhook.url + path_of(VALIDATE, kind), data=body, headers=JSON) as answer:
            payload = await answer.read()
        used = scene.webhook.cpu() - used
        scene.stage.holds(b'"allowed":false' in payload, f"not refused: {payload[:200]!r}")
        scene.stage.holds(used < MOST_WORK, f"the answer takes {used:.1f} s of CPU")
        scene.stage.holds(len(payload) <= MAX_RESPONSE_SIZE, f"the answer has {len(payload)} bytes")
        scene.measured()


TYPES = (
    "text/plain",
    "application/xml",
    "application/yaml",
    "application/jsonp",
    "application/json/x",
    "application/x-www-form-urlencoded",
    "application/vnd.kubernetes.protobuf",
    "multipart/form-data; boundary=x",
    "json",
    "/",
    "*/*",
    "",
)


async def content_types(scene: Scene) -> None:
    """A good review under another name is not even looked at."""
    good = json.dumps(review(MEMCACHED, GOOD)).encode()
    for kind in TYPES:
        code, response = await sent(scene.session, scene.webhook.url, PATH, good, {"Content-Type": kind})
        scene.stage.holds(code == 415, f"{code} {response} for {kind}")


def _compressed() -> list[tuple[str, bytes]]:
    bomb = b" " * (256 * 2**20)
    return [
        ("gzip", gzip.compress(bomb)),
        ("deflate", zlib.compress(bomb)),
        ("gzip", gzip.compress(_bytes())[:-20]),
        ("gzip", b"no gzip"),
        ("br", _bytes()),
        ("unknown", _bytes()),
        ("gzip, gzip", gzip.compress(gzip.compress(bomb))),
    ]


async def encodings(scene: Scene) -> None:
    """Compressed bodies, and those that become a thousand times as large."""
    # In a thread: it takes seconds, in which the other cases would find their reviews too slow.
    for name, data in await asyncio.to_thread(_compressed):
        await scene.refused(data, Content_Encoding=name)
        scene.measured()
