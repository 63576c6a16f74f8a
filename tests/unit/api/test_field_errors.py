import pytest

from memcached_api.validation import field_errors
from memcached_api.validation.field_errors import FieldError, SpecDecodeError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FieldError("spec.size", 0, "must be at least 1"), "spec.size: Invalid value: 0: must be at least 1"),
        (FieldError("spec.image", 'a"b', "no"), 'spec.image: Invalid value: "a\\"b": no'),
        (FieldError("a.name", None, "must be set", field_errors.REQUIRED), "a.name: Required value: must be set"),
    ],
)
def test_error_has_the_format_of_kubernetes(error: FieldError, text: str):
    assert str(error) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (None, "null"),
        ({"a": 1}, '"object"'),
        ([1], '"array"'),
        ("é", '"é"'),
        ("x" * 100, '"' + "x" * 100 + '"'),
        ("x" * 300, '"' + "x" * 100 + '…"'),
        (10**300, "1" + "0" * 99 + "…"),
        ("a\nb\x1b[31m", r'"a\nb\u001b[31m"'),
        ("a\x9b\u2028\u202e\x7f", r'"a\u009b\u2028\u202e\u007f"'),
    ],
)
def test_values_are_truncated_and_escaped(value: object, text: str):
    assert field_errors.format_value(value) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("spec.resources.limits[cpu]", "spec.resources.limits[cpu]"),
        ("x" * 100, "x" * 100),
        ("x" * 4_000_000, '"' + "x" * 100 + '…"'),
        ("a\nb", r'"a\nb"'),
        ("", ""),
    ],
)
def test_names_are_quoted_only_if_they_are_long_or_not_printable(text: str, expected: str):
    assert field_errors.quote_if_needed(text) == expected


def test_quotes_are_escaped():
    assert field_errors.quote('a": b') == r'"a\": b"'


def test_longest_field_is_not_truncated():
    terms = "spec.podTemplate.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    field = f"{terms}[63].podAffinityTerm.namespaceSelector.matchExpressions[63].values[63]"
    assert str(FieldError(field, -1, "no")) == f"{field}: Invalid value: -1: no"


def test_user_defined_field_name_is_truncated_but_compared_in_full():
    one, other = (FieldError(f"spec.resources.limits[{'x' * 4_000_000}{end}]", -1, "no") for end in "ab")
    assert one != other
    assert str(one) == f'"spec.resources.limits[{"x" * 178}…": Invalid value: -1: no'


def test_invalid_spec_reports_all_errors():
    errors = [FieldError("a", 1, "x"), FieldError("b", 2, "y")]
    assert str(SpecDecodeError(errors)) == "[a: Invalid value: 1: x, b: Invalid value: 2: y]"
    assert SpecDecodeError(errors).errors == errors
    assert field_errors.aggregate(errors[:1]) == "a: Invalid value: 1: x"
    assert field_errors.aggregate(errors[:1], 7) == "[a: Invalid value: 1: x, and 7 more]"


@pytest.mark.parametrize(
    ("count", "limit", "text"),
    [
        (1, 4096, "f: Invalid value: 0: no"),
        (2, 4096, "[f: Invalid value: 0: no, f: Invalid value: 1: no]"),
        (14, 70, "[f: Invalid value: 0: no, f: Invalid value: 1: no, and 12 more]"),
        (2, 1, "[f: Invalid value: 0: no, and 1 more]"),
    ],
)
def test_summary_has_the_first_errors_and_counts_the_others(count: int, limit: int, text: str):
    assert field_errors.summary([FieldError("f", number, "no") for number in range(count)], limit) == text


@pytest.mark.parametrize("limit", range(60, 4097, 97))
def test_summary_fits(limit: int):
    assert len(field_errors.summary([FieldError("f", number, "no") for number in range(5000)], limit)) <= limit
