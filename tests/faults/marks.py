"""The marks of the tests that run cases."""

from collections.abc import Mapping
from typing import Any

import pytest

from faults.case import Case


def params(cases: Mapping[str, tuple[Case, bool]]) -> list[Any]:
    """The names as parameters, with the marks of their cases. The second value: whether every gate runs the test."""
    return [pytest.param(name, id=name, marks=_marks(case, gate=gate)) for name, (case, gate) in cases.items()]


def _marks(case: Case, *, gate: bool) -> list[pytest.MarkDecorator]:
    names = {"gate": gate, "alone": case.alone}
    return [getattr(pytest.mark, name) for name, applies in names.items() if applies]
