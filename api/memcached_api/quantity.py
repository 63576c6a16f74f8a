"""Kubernetes quantities (`64Mi`, `500m`, `1e3`), as k8s.io/apimachinery pkg/api/resource parses and formats them."""

import math
import re
from collections.abc import Mapping
from decimal import ROUND_UP, Context, Decimal
from functools import lru_cache
from typing import Final, NamedTuple

_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIX: Final = {exponent: suffix for suffix, exponent in _BINARY.items()} | {0: ""}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}

_NUMBER: Final = re.compile(r"(?P<sign>[+-]?)0*(?P<whole>[0-9]*)(?P<point>\.?)(?P<part>[0-9]*)(?P<suffix>.*)", re.ASCII)
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]{1,3})", re.ASCII)

_MAX_LENGTH: Final = 64  # characters; the CRD's maxLength
_MAX_BINARY: Final = Decimal(2**63 - 1)  # apimachinery caps quantities with a binary suffix here
_NANO: Final = Decimal("1e-9")
_MILLI: Final = Decimal("1e-3")
_EXACT: Final = Context(prec=2000)  # more digits than 64 characters and a three-digit exponent can need


class _Quantity(NamedTuple):
    value: Decimal
    number_format: str  # "binary", "decimal" or "exponent": the kind of suffix, which canonical form keeps
    verbatim: str  # the original text if apimachinery stores it unchanged, otherwise ""


def parse_quantity(q: str | float) -> Decimal:
    """The exact value of a quantity, rounded up (away from zero) to nano as in the API server.

    Raises ValueError for anything else; the message describes the syntax of a quantity.
    """
    return _parse(_text(q)).value


def canonical(q: str | float) -> str:
    """The canonical form in which the API server stores a quantity: `1024Mi` → `1Gi`, `0.5` → `500m`, `1e3` → `1e3`.

    Raises ValueError as `parse_quantity` does. Within a container's resources the server also rounds: see
    `canonical_resource`.
    """
    return _canonical(_text(q))


def canonical_resource(q: str | float) -> str:
    """The canonical form in which the API server stores a quantity of a container's `limits` or `requests`.

    Only these values are also rounded up to thousandths: `100u` → `1m` (SetDefaults_ResourceList of
    kubernetes pkg/apis/core/v1/defaults.go). Raises ValueError as `parse_quantity` does.
    """
    return _canonical_resource(_text(q))


def canonical_resource_list(amounts: Mapping[str, str | int | float]) -> dict[str, str]:
    """`limits` or `requests` in canonical form, as the API server stores them.

    Raises ValueError as `parse_quantity` does.
    """
    return {name: canonical_resource(amount) for name, amount in amounts.items()}


def shortest_resource(q: str | float) -> str:
    """The shortest form of a quantity of `limits` or `requests`; equal amounts have the same: `536870912` → `512Mi`.

    Raises ValueError as `parse_quantity` does.
    """
    return _shortest_resource(_text(q))


def _text(q: object) -> str:
    if isinstance(q, str):
        return q
    if isinstance(q, bool) or not isinstance(q, int | float) or not math.isfinite(q):
        raise ValueError("must be a quantity: an integer or a string such as 64Mi or 500m")
    if isinstance(q, float) and q.is_integer():
        q = int(q)  # the API server stores 3.0 as 3
    return str(q) if abs(q) < 10**_MAX_LENGTH else "out of range"


@lru_cache(maxsize=4096)
def _parse(text: str) -> _Quantity:
    match = _NUMBER.fullmatch(text)
    if (
        match is None
        or len(text) > _MAX_LENGTH
        or not any(character.isdigit() for character in text[: match.end("part")])
    ):
        raise ValueError(_error_message(text))
    sign, whole, point, part, suffix = match.groups()
    shift, number_format = _suffix(text, suffix)
    digits = Decimal(f"{sign}{whole or 0}{point}{part or (0 if point else '')}")
    factor = Decimal(2**shift) if number_format == "binary" else Decimal(10).scaleb(shift - 1, _EXACT)
    value = _EXACT.multiply(digits, factor)
    verbatim = text if _is_verbatim(whole or "0", part, shift, number_format) else ""
    return _capped(_rounded(value, _NANO), number_format, verbatim)


def _suffix(text: str, suffix: str) -> tuple[int, str]:
    """The suffix as an exponent of 2 or 10, and its number format. `E` alone is exa, `E3` an exponent."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], "decimal"
    if suffix in _BINARY:
        return _BINARY[suffix], "binary"
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        raise ValueError(_error_message(text))
    return int(exponent[1]), "exponent"


def _error_message(text: str) -> str:
    if len(text) > _MAX_LENGTH:
        return f"is not a quantity: may not be more than {_MAX_LENGTH} characters"
    return "is not a quantity: must be a number with an optional suffix (n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or e3)"


def _is_verbatim(whole: str, part: str, shift: int, number_format: str) -> bool:
    """Whether ParseQuantity's fast path keeps the text unchanged, even if a shorter form exists (`1024`)."""
    digits = whole + part
    if number_format == "binary":
        fits = not part and len(whole) + shift * 3 // 10 <= 14
        return fits and int(digits) % 8 != 0
    scale = shift - len(part)
    fits = len(digits) <= 18 and scale >= -9
    return fits and scale % 3 == 0 and not digits.endswith("000") and not digits.startswith("0")


def _rounded(value: Decimal, unit: Decimal) -> Decimal:
    return value.quantize(unit, ROUND_UP, _EXACT)


def _capped(value: Decimal, number_format: str, verbatim: str) -> _Quantity:
    if number_format == "binary" and abs(value) > _MAX_BINARY:
        value = _MAX_BINARY.copy_sign(value)
    return _Quantity(value, number_format, verbatim)


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    quantity = _parse(text)
    return quantity.verbatim or _format(quantity.value, quantity.number_format)


@lru_cache(maxsize=4096)
def _canonical_resource(text: str) -> str:
    quantity = _parse(text)
    rounded = _rounded(quantity.value, _MILLI)
    return _canonical(text) if rounded == quantity.value else _format(rounded, quantity.number_format)


@lru_cache(maxsize=4096)
def _shortest_resource(text: str) -> str:
    value = _rounded(_parse(text).value, _MILLI)
    return min((_format(value, number_format) for number_format in ("binary", "decimal")), key=len)


def _format(value: Decimal, number_format: str) -> str:
    """Format as CanonicalizeBytes does: no fraction, the largest suffix, binary only for integers from 1024 on."""
    if not value:
        return "0"
    if number_format == "binary" and abs(value) >= 1024 and value == value.to_integral_value():
        amount, exponent = _without_factor(int(value), 1024)
        return f"{amount}{_BINARY_SUFFIX[exponent * 10]}"
    amount, exponent = _without_factor(int(value.scaleb(9, _EXACT)), 10)
    exponent -= 9
    amount, exponent = amount * 10 ** (exponent % 3), exponent - exponent % 3
    if number_format == "exponent":
        return f"{amount}e{exponent}" if exponent else str(amount)
    return f"{amount}{_DECIMAL_SUFFIX.get(exponent, '')}"


def _without_factor(amount: int, factor: int) -> tuple[int, int]:
    times = 0
    while amount % factor == 0:
        amount, times = amount // factor, times + 1
    return amount, times
