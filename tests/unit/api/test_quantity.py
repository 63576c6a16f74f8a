"""Quantities, against a table made by apimachinery v0.35.4: text → [canonical, canonical in a resource list]."""

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcached_api import quantity
from memcached_api.kubernetes import QUANTITY

TABLE: dict[str, list[str | None]] = json.loads(Path(__file__).with_name("quantities.json").read_text())

NUMBERS = st.from_regex(r"[+-]?[0-9]{1,20}(\.[0-9]{0,12})?", fullmatch=True)
SUFFIXES = st.sampled_from(
    ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-4"]
)


@pytest.mark.parametrize("text", [text for text, stored in TABLE.items() if stored[0] is not None])
def test_spelled_as_the_api_server_stores_it(text: str):
    assert [quantity.canonical(text), quantity.canonical_resource(text)] == TABLE[text]


@pytest.mark.parametrize("text", [text for text, stored in TABLE.items() if stored[0] is None])
def test_what_apimachinery_refuses_is_refused(text: str):
    with pytest.raises(ValueError, match="must be a number with an optional suffix"):
        quantity.parse(text)


@pytest.mark.parametrize(
    ("q", "number"),
    [
        (0, "0"),
        (3, "3"),
        (3.0, "3"),
        (0.5, "0.5"),
        ("64Mi", "67108864"),
        ("500m", "0.5"),
        ("1e3", "1000"),
        ("1E", "1000000000000000000"),
        ("-1.5Gi", "-1610612736"),
        ("0.1n", "0.000000001"),
        ("16Ei", "9223372036854775807"),
        (10**30, "1e30"),
    ],
)
def test_parse(q: str | float, number: str):
    assert quantity.parse(q) == Decimal(number)


@pytest.mark.parametrize("q", [True, None, [], {}, float("nan"), float("inf"), 10**70, "9" * 65])
def test_what_is_no_quantity(q: object):
    with pytest.raises(ValueError, match="quantity"):
        quantity.parse(q)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [("1024Mi", "1Gi", True), (0.5, "500m", True), ("1", 1, True), ("1k", "1Ki", False), ("100u", "1m", False)],
)
def test_equal(a: str | float, b: str | float, same: bool):
    assert quantity.equal(a, b) is same


@given(NUMBERS, SUFFIXES)
def test_canonical_form_is_the_same_number_and_stable(number: str, suffix: str):
    text = number + suffix
    stored = quantity.canonical(text)
    if quantity.parse(text) < 10**21:  # above, apimachinery itself runs out of suffixes
        assert quantity.equal(stored, text)
    assert quantity.canonical(stored) == stored


@given(st.one_of(st.text(max_size=70), st.from_regex(rf"{QUANTITY}.?", fullmatch=True)))
def test_the_crd_pattern_admits_exactly_what_parses(text: str):
    matches = re.fullmatch(QUANTITY, text) is not None and len(text) <= 64
    try:
        quantity.parse(text)
    except ValueError:
        assert not matches
    else:
        assert matches
