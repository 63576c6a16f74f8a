"""From the bytes of a review to the bytes of its response."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcached_api.images import Images
from memcached_api.validation.field_errors import FieldError
from memcached_webhooks.kinds import memcached
from memcached_webhooks.review import (
    ALLOWED,
    InvalidReviewError,
    ReviewRequest,
    ReviewResponse,
    bad_request,
    handle_review,
    invalid,
    object_name,
)

from .reviews import DEFAULT, patch_of, request, review

HANDLERS = memcached.admission(Images(DEFAULT)).handlers()


def respond(body: dict[str, Any], result: ReviewResponse = ALLOWED) -> dict[str, Any]:
    return msgspec.json.decode(handle_review(msgspec.json.encode(body), lambda _: result)[0])


def test_allowed():
    assert respond(review({})) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u", "allowed": True},
    }


def test_patch_is_a_base64_encoded_json_patch():
    patch = [{"op": "add", "path": "/spec/size", "value": 1}]
    response = respond(review({}), ReviewResponse(patch=patch))
    assert response["response"]["patchType"] == "JSONPatch"
    assert patch_of(response) == patch


def test_warnings():
    assert respond(review({}), ReviewResponse(warnings=["x"]))["response"]["warnings"] == ["x"]


def test_denial_has_the_status_format_of_kubernetes():
    errors = [FieldError("spec.size", 0, "must be at least 1"), FieldError("spec.image", "A b", "no")]
    denial = invalid(request({}), {}, errors)
    assert respond(review({}), ReviewResponse(denial))["response"] == {
        "uid": "u",
        "allowed": False,
        "status": {
            "status": "Failure",
            "code": 422,
            "reason": "Invalid",
            "message": 'Memcached.cache.example.com "cache" is invalid: [spec.size: Invalid value: 0: must be at least '
            '1, spec.image: Invalid value: "A b": no]',
            "details": {
                "name": "cache",
                "group": "cache.example.com",
                "kind": "Memcached",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": "Invalid value: 0: must be at least 1",
                        "field": "spec.size",
                    },
                    {"reason": "FieldValueInvalid", "message": 'Invalid value: "A b": no', "field": "spec.image"},
                ],
            },
        },
    }


def test_review_of_another_kind_is_a_bad_request():
    denial = bad_request(request({}), "app.example.com", "AppService")
    assert (denial.code, denial.reason) == (400, "BadRequest")
    wanted = 'CREATE and UPDATE of AppService of group "app.example.com"'
    assert f'handles {wanted}, not CREATE of Memcached of group "cache.example.com"' in denial.message


@pytest.mark.parametrize(
    ("obj", "name"),
    [
        ({"metadata": {"name": "a", "generateName": "b-"}}, "a"),
        ({"metadata": {"generateName": "b-"}}, "b-"),
        ({"metadata": {"name": 1}}, ""),
        ({"metadata": []}, ""),
        (None, ""),
    ],
)
def test_object_name(obj: Any, name: str):
    assert object_name(obj) == name


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not a valid AdmissionReview"),
        (b"{", "not a valid AdmissionReview"),
        (b"[]", "not a valid AdmissionReview"),
        (b'"\xff"', "not a valid AdmissionReview"),
        (b"[" * 100_000, "not a valid AdmissionReview"),
        (b"{}", 'expected an AdmissionReview of admission.k8s.io/v1, got "" of ""'),
        (b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}', 'got "AdmissionReview" of "admission'),
        (b'{"apiVersion":"admission.k8s.io/v1","kind":"Review"}', 'got "Review"'),
        (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}', "has no request"),
        (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":1}}', "Expected `str`"),
    ],
)
def test_invalid_reviews(body: bytes, message: str):
    with pytest.raises(InvalidReviewError) as raised:
        handle_review(body, lambda _: ALLOWED)
    assert message in str(raised.value)


def test_unused_fields_are_ignored():
    requests: list[ReviewRequest] = []
    body = review({"a": 1}, userInfo={"username": "u"}, options={}, dryRun=True)
    handle_review(msgspec.json.encode(body), lambda request: requests.append(request) or ALLOWED)
    assert requests == [request({"a": 1})]


ANY: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "spec", "size", "image", "cache", "memory", "resources", "limits", "cpu", "name"]
            ),
            inner,
            max_size=4,
        )
    ),
)


@given(ANY, ANY, st.sampled_from(sorted(HANDLERS)))
def test_any_object_gets_a_response(obj: Any, old: Any, path: str):
    body = review(obj) if old is None else review(obj, old)
    response, _ = handle_review(msgspec.json.encode(body), HANDLERS[path])
    assert msgspec.json.decode(response)["response"]["uid"] == "u"


@given(st.binary(max_size=50))
def test_random_bytes_are_a_bad_review(body: bytes):
    with pytest.raises(InvalidReviewError):
        handle_review(body, lambda _: ALLOWED)
