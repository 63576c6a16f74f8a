"""Cases that a sync would repair end before the first sync, however long their deadlines are."""

import subprocess
import sys

import pytest

from faults.__main__ import all_cases
from faults.campaigns.watches import REPAIRED_BY_SYNC
from faults.process import ROOT
from faults.sandbox import LONG_SYNC_PERIOD, TIMEOUT_FACTOR, Settings

FIRST_SYNC = 0.9
"""The operator's sync period varies by this factor at least."""
LONG = "import faults.sandbox as s; print(s.LONG_SYNC_PERIOD / s.TIMEOUT_FACTOR)"


def test_case_with_the_long_period_ends_before_the_first_sync() -> None:
    limits = {case.limit for case in all_cases() if case.sync_period == LONG_SYNC_PERIOD}
    assert max(limits) * TIMEOUT_FACTOR < LONG_SYNC_PERIOD * FIRST_SYNC


@pytest.mark.parametrize("factor", ["1", "3"])
def test_long_period_grows_with_the_deadlines(factor: str) -> None:
    environment = {"PYTHONPATH": f"{ROOT / 'tests'}:{ROOT / 'tools'}", "FAULTS_TIMEOUT_FACTOR": factor}
    done = subprocess.run([sys.executable, "-c", LONG], env=environment, capture_output=True, text=True, check=True)
    assert float(done.stdout) == 600


@pytest.mark.parametrize("campaign", ["T2", "T4", "T7"])
def test_only_faults_that_the_operator_cannot_notice_are_repaired_by_a_sync(campaign: str) -> None:
    cases = [case for case in all_cases() if case.name.partition("/")[0] == campaign]
    short = {case.name for case in cases if case.sync_period != LONG_SYNC_PERIOD}
    assert {name.rpartition("/")[2] for name in short} == (set(REPAIRED_BY_SYNC) if campaign == "T4" else set())


def test_case_does_not_wait_for_a_sync_that_does_not_take_place() -> None:
    assert Settings(sync_period=5.0).sync_time == 5.0
    assert Settings(sync_period=LONG_SYNC_PERIOD).sync_time == 0.0
