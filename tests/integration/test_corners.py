"""The corner table in admission, with each API server, and a sample of the corner tests with the real memcacheds."""

import os
import sys

import pytest

from corners import cases, table
from integration.control_plane import ControlPlane
from support import interruptible
from support.memcacheds import skip_unless_possible


@pytest.mark.server
def test_webhook_and_api_server_agree_at_every_limit(plane: ControlPlane) -> None:
    found = {entry.name: cases.disagreement(plane, entry) for entry in table.entries()}
    assert {name: problem for name, problem in found.items() if problem} == {}


@pytest.mark.nightly
def test_accepted_specs_start_and_stay_within_their_memory() -> None:
    skip_unless_possible()
    words = [sys.executable, "-m", "corners", "--sample"]
    code, output = interruptible.run(words, {**os.environ, "PYTHONPATH": "measure:tests:tools"})
    assert code == 0, output
