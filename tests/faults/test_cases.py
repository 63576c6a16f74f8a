"""Each fault of the campaigns on a real control plane. Every gate runs those marked `gate`, the others run nightly."""

from pathlib import Path
from typing import Any

import pytest

from faults.cases import all_cases
from faults.marks import params
from faults.session import Session

# Some cases send large bodies at once, which the client of the tests warns of.
pytestmark = pytest.mark.filterwarnings("default::ResourceWarning")
CASES = all_cases()


@pytest.mark.parametrize("name", params({name: (case, case.gate) for name, case in CASES.items()}))
def test_case(name: str, faults: Session, tmp_path: Path, record_property: Any) -> None:
    if note := faults.run(CASES[name], tmp_path):
        record_property("note", note)
