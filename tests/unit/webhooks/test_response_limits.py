"""Limits of responses: echoed values are truncated, and the size is bounded, for any review."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memcached_api.images import Images
from memcached_api.registry import KINDS
from memcached_api.validation.field_errors import FieldError
from memcached_webhooks.kinds import handlers
from memcached_webhooks.review import (
    ALLOWED,
    MAX_RESPONSE_SIZE,
    InvalidReviewError,
    ReviewResponse,
    handle_review,
    invalid,
)

from .reviews import DEFAULT, MUTATE, VALIDATE, request, review
from .reviews import memcached as memcached_object

HANDLERS = handlers(Images(DEFAULT))

Fields = Callable[[str], dict[str, Any]]

MAX_LENGTHS: dict[str, tuple[int, Fields]] = {
    "uid": (128, lambda text: {"uid": text}),
    "operation": (32, lambda text: {"operation": text}),
    "subResource": (63, lambda text: {"subResource": text}),
    "name": (1024, lambda text: {"name": text}),
    "group": (253, lambda text: {"kind": {"group": text}}),
    "version": (63, lambda text: {"kind": {"version": text}}),
    "kind": (63, lambda text: {"kind": {"kind": text}}),
}


@pytest.mark.parametrize(("max_length", "fields"), MAX_LENGTHS.values(), ids=MAX_LENGTHS.keys())
def test_fields_of_a_review_are_bounded(max_length: int, fields: Fields):
    body, _ = handle_review(msgspec.json.encode(review({}, **fields("x" * max_length))), HANDLERS[VALIDATE])
    assert len(body) < 3000
    for length in (max_length + 1, 4_000_000):
        with pytest.raises(InvalidReviewError, match=f"length <= {max_length}") as raised:
            handle_review(msgspec.json.encode(review({}, **fields("x" * length))), lambda _: ALLOWED)
        assert len(str(raised.value)) < 200


@pytest.mark.parametrize("part", ["apiVersion", "kind"])
def test_invalid_review_is_not_echoed_in_full(part: str):
    with pytest.raises(InvalidReviewError) as raised:
        handle_review(msgspec.json.encode({**review({}), part: "x\n" * 2_000_000}), lambda _: ALLOWED)
    assert len(str(raised.value)) < 400
    assert "\n" not in str(raised.value)


TEXTS = ("x", '"', "\n", "\\", "é", "😀", "\x00", "]", ": ", ",")
COUNTS = st.sampled_from((1, 99, 101, 5000, 10**5))
LONG: st.SearchStrategy[str] = st.tuples(st.sampled_from(TEXTS), COUNTS).map(lambda pair: pair[0] * pair[1])
ITEMS: dict[str, Fields] = {
    "imagePullSecrets": lambda text: {"name": text},
    "envs": lambda text: {"name": text, "value": 1, "valueFrom": {"fieldRef": {"fieldPath": text}, "secretKeyRef": {}}},
    "ports": lambda text: {"port": text, "name": text, "targetPort": text, "protocol": text, "nodePort": -1},
}


@st.composite
def hostile(draw: st.DrawFn) -> dict[str, Any]:
    """An object whose unbounded response would be large. Only the first error of the largest ones is reported."""
    spec: dict[str, Any] = {field: draw(LONG) for field in ("size", "image", "containerPort", "imagePullPolicy")}
    count = draw(st.sampled_from([1, 60, 128, 5000]))
    size = draw(st.sampled_from([2**15, 2**18]))
    for field, item in ITEMS.items():
        spec[field] = [item(draw(LONG)[: size // count])] * count
    amounts = {draw(LONG) + str(number): draw(LONG)[:1000] for number in range(draw(st.integers(0, 7)))}
    spec["resources"] = {"limits": amounts, "requests": dict.fromkeys(amounts, "9")}
    return {"metadata": {"name": draw(LONG), "generateName": draw(LONG)}, "spec": spec}


@given(hostile(), st.booleans(), st.sampled_from(sorted(HANDLERS)))
@settings(max_examples=30, deadline=None)
def test_response_is_never_large(obj: Any, stored: bool, path: str):
    old = obj if stored else None
    kind = next(each for each in KINDS if path.endswith(f"-{each.name.lower()}"))
    body = review(obj, old, name="", kind={"group": kind.group, "version": kind.versions[0], "kind": kind.name})
    response, result = handle_review(msgspec.json.encode(body), HANDLERS[path])
    assert len(response) <= MAX_RESPONSE_SIZE
    if "/validate" in path and not stored:
        status = msgspec.json.decode(response)["response"]["status"]
        assert result.denial is not None
        assert status["code"] == 422
        assert status["details"]["causes"]
        assert status["message"].isprintable()
        assert len(status["details"].get("name", "")) <= 100
        assert all(len(cause["field"]) <= 1300 for cause in status["details"]["causes"])


def test_name_of_a_resource_is_truncated():
    name = "example.com/" + "x\n" * 1000
    obj = memcached_object({"size": 1, "resources": {"limits": {name: "1"}, "requests": {name: "2"}}})
    response, _ = handle_review(msgspec.json.encode(review(obj)), HANDLERS[VALIDATE])
    message = msgspec.json.decode(response)["response"]["status"]["message"]
    assert "must be at most the " in message
    assert message.isprintable()
    assert "x\\n" * 101 not in message


def test_object_with_a_long_name_is_denied():
    obj = {"metadata": {"name": "a" * 1000}, "spec": {"size": 1}}
    response, _ = handle_review(msgspec.json.encode(review(obj, name="a" * 1000)), HANDLERS[VALIDATE])
    status = msgspec.json.decode(response)["response"]["status"]
    assert "must be a DNS-1035 label" in status["message"]
    assert f'"{"a" * 100}…" is invalid' in status["message"]
    assert "name" not in status["details"]


def test_denial_counts_the_omitted_errors():
    errors = [FieldError(f"spec.a[{number}]", "x" * 200, "must be something else " * 10) for number in range(1000)]
    response, _ = handle_review(
        msgspec.json.encode(review({})), lambda _: ReviewResponse(invalid(request({}), {}, errors))
    )
    assert len(response) <= MAX_RESPONSE_SIZE
    status = msgspec.json.decode(response)["response"]["status"]
    included = len(status["details"]["causes"])
    assert 10 < included < 1000
    assert status["message"].endswith(f", and {1000 - included} more]")


def test_defaults_that_do_not_fit_are_omitted():
    old = memcached_object({"image": "x" * 100_000})
    response, _ = handle_review(msgspec.json.encode(review(memcached_object({}), old)), HANDLERS[MUTATE])
    assert msgspec.json.decode(response)["response"] == {"uid": "u", "allowed": True}


# Specs with balanced brackets that are not valid JSON.
DECODE_ERRORS = {
    "a number that is too large": b'{"size":1e400}',
    "an integer that is too large": b'{"size":%s}' % (b"9" * 5000),
    "a leading zero": b'{"size":01}',
    "too deep": b'{"cache":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "not UTF-8": b'{"image":"\xff"}',
}


@pytest.mark.parametrize("path", HANDLERS)
@pytest.mark.parametrize("spec", DECODE_ERRORS.values(), ids=DECODE_ERRORS.keys())
def test_unreadable_spec_is_a_bad_review(path: str, spec: bytes):
    kind = next(kind for kind in KINDS if path.endswith(f"-{kind.name.lower()}"))
    body = msgspec.json.encode(review({"spec": "SPEC"}, kind={"group": kind.group, "kind": kind.name}))
    with pytest.raises(InvalidReviewError):
        handle_review(body.replace(b'"SPEC"', spec), HANDLERS[path])
