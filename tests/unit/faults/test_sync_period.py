"""Cases that a sync would repair end before the first sync, however long their deadlines are."""

from faults.campaigns.watches import REPAIRED_BY_SYNC
from faults.cases import all_cases
from faults.sandbox import LONG_SYNC_PERIOD, TIMEOUT_FACTOR, Settings

FIRST_SYNC = 0.9
"""The operator's sync period varies by this factor at least."""


def test_case_with_the_long_period_ends_before_the_first_sync() -> None:
    limits = {case.limit for case in all_cases().values() if case.sync_period == LONG_SYNC_PERIOD}
    assert max(limits) * TIMEOUT_FACTOR < LONG_SYNC_PERIOD * FIRST_SYNC
    assert Settings(sync_period=LONG_SYNC_PERIOD).sync_time == 0.0, "nothing waits for it"


def test_only_faults_that_the_operator_cannot_notice_are_repaired_by_a_sync() -> None:
    cases = [case for case in all_cases().values() if case.name.partition("/")[0] in ("lost-reply", "watch", "drift")]
    short = {case.name for case in cases if case.sync_period != LONG_SYNC_PERIOD}
    assert {name.partition("/")[0] for name in short} == {"watch"}
    assert {name.rpartition("/")[2] for name in short} == set(REPAIRED_BY_SYNC)
