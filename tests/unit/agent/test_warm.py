"""The pure functions of the warm gate: the annotation, the window, the record and the decision."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcached_agent.memcached.stats import Gets, parse_stats
from memcached_agent.pod import fields, record
from memcached_agent.pod.record import ProcessRecord, Seen
from memcached_agent.warm import decision, gate, window
from memcached_agent.warm.decision import decide
from memcached_agent.warm.gate import Gate
from memcached_agent.warm.window import Sample, Window

from .samples import replies

GATE = Gate(80, 900, 100)
NUMBERS = st.integers(0, 2**63)
RATIOS = st.none() | st.integers(0, record.WHOLE)
GATES = st.builds(Gate, st.integers(1, 100), st.integers(1, 10**9), st.integers(0, 10**9))
RECORDS = st.builds(
    ProcessRecord,
    *(NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.booleans(), RATIOS, RATIOS),
    *(st.none() | st.integers(0, 10**9), NUMBERS, NUMBERS),
)


@st.composite
def windows(draw: st.DrawFn) -> Window:
    """Any window."""
    gets = draw(st.integers(0, 10**6))
    return Window(draw(st.floats(0, 75)), draw(st.integers(0, gets)), gets)


@given(GATES)
def test_gate_in_a_valid_annotation(expected: Gate) -> None:
    ratio, timeout, requests = expected
    text = f"hitRatio={ratio},timeout={timeout},minRequests={requests}"
    assert gate.parse_gate(text) == expected
    assert gate.parse_gate(",".join(reversed(text.split(",")))) == expected


INVALID = [
    *("", "80", "hitRatio=80", "hitRatio=80,timeout=900", f"{gate.EXAMPLE},", f"{gate.EXAMPLE},other=1"),
    *(f"{gate.EXAMPLE},timeout=1", "hitRatio=0,timeout=900,minRequests=1", "hitRatio=101,timeout=900,minRequests=1"),
    *("hitRatio=80,timeout=0,minRequests=1", "hitRatio=80,timeout=1000000001,minRequests=1"),
    *("hitRatio=80,timeout=9,minRequests=1000000001", "hitRatio=-80,timeout=9,minRequests=1"),
    *(
        "hitRatio=80%,timeout=9,minRequests=1",
        "hitRatio=80,timeout=15m,minRequests=1",
        "hitRatio=٨,timeout=9,minRequests=1",
    ),
    *("hitRatio=80, timeout=9,minRequests=1", f"hitRatio=80,timeout=9,minRequests={'1' * 5000}", "x" * 5000, "\x1b[0m"),
]


@pytest.mark.parametrize("text", INVALID, ids=range(len(INVALID)))
def test_invalid_annotation_is_quoted_and_bounded(text: str) -> None:
    with pytest.raises(ValueError, match="counts as warm") as raised:
        gate.parse_gate(text)
    message = str(raised.value)
    assert repr(text[:64]) in message
    assert len(message) < 300
    assert message.isprintable()


@given(st.dictionaries(st.from_regex(r"[a-zA-Z]+", fullmatch=True), NUMBERS, min_size=1))
def test_fields_are_read_as_they_were_written(expected: dict[str, int]) -> None:
    assert fields.parse_fields(fields.render(expected)) == expected


def sampled(*samples: tuple[float, int, int] | tuple[float, int, int, int]) -> Window:
    """What these samples show: the time, and the gets."""
    found: window.Samples = ()
    for at, *gets in samples:
        found = window.add(found, Sample(at, Gets(*gets)))
    return window.window(found)


def test_window_is_the_last_minute() -> None:
    assert sampled() == Window(0, 0, 0)
    assert sampled((5, 1000, 10)) == Window(0, 0, 0)
    assert sampled((5, 1000, 10), (10, 1030, 20)) == Window(5, 30, 40)
    every = [(5.0 * number, 100 * number, 10 * number) for number in range(100)]
    assert sampled(*every) == Window(60, 1200, 1320)
    assert sampled((0, 0, 0), (33, 10, 0), (66, 30, 0)) == Window(66, 30, 30)
    assert sampled((0, 10**6, 0), *((5.0 * each, 10**6, each) for each in range(1, 20))).ratio == 0


def test_gets_of_lost_items_are_no_hits() -> None:
    """memcached counts a get as a hit before it reads the item from the disk, maybe in the window before."""
    assert sampled((0, 100, 10, 1), (5, 200, 20, 41)) == Window(5, 60, 110)
    assert sampled((0, 100, 10, 1), (5, 101, 10, 3)) == Window(5, 0, 1)


def test_window_starts_again() -> None:
    assert sampled((0, 100, 100), (5, 200, 200), (10, 5, 5)) == Window(0, 0, 0), "stats reset"
    assert sampled((0, 100, 100), (5, 200, 200), (10, 200, 5)) == Window(0, 0, 0), "fewer misses"
    assert sampled((0, 100, 100, 9), (5, 200, 200, 9), (10, 300, 300, 8)) == Window(0, 0, 0), "fewer lost items"
    assert sampled((0, 100, 100), (5, 200, 200), (300, 400, 400)) == Window(0, 0, 0), "the agent was paused"


@given(st.lists(st.tuples(st.floats(0, 20), st.integers(0, 1000), st.integers(0, 1000)), max_size=200))
def test_window_is_bounded(steps: list[tuple[float, int, int]]) -> None:
    found: window.Samples = ()
    at, hits, misses = 0.0, 0, 0
    for seconds, more_hits, more_misses in steps:
        at, hits, misses = at + seconds, hits + more_hits, misses + more_misses
        found = window.add(found, Sample(at, Gets(hits, misses)))
        shown = window.window(found)
        assert len(found) <= window.MAX_SAMPLES
        assert 0 <= shown.hits <= shown.gets
        assert 0 <= shown.seconds <= window.MINUTE + window.MAX_GAP
        assert found[-1] == Sample(at, Gets(hits, misses))


def test_process_in_the_statistics() -> None:
    found = record.seen(parse_stats(replies()["stats"]))
    assert found == Seen(543, 1795312748, 1795312752, 69, Gets(6668, 3333))
    assert record.seen({}) == Seen(0, 0, 0, 0, Gets())
    assert record.seen({"time": "5", "uptime": "9", "pid": "x"}).started == 0


PROCESS = Seen(1, 1000, 1100, 500, Gets())
WARM = ProcessRecord(1, 1000, 400, 1000, warm=True, ratio=8000, before=9000, took=30, kept=1, lost=2)
COLD = WARM._replace(warm=False, ratio=None)
LOST = WARM._replace(cpu=500, warm=False, ratio=None, before=8000, lost=3)
KEPT = WARM._replace(began=1100, warm=False, ratio=None, before=8000, kept=2)
FOLLOWS = {
    "first": (None, PROCESS, ProcessRecord(1, 1000, 500, 1000)),
    "same": (WARM, PROCESS, WARM._replace(cpu=500)),
    "same, rounded differently": (WARM, PROCESS._replace(started=1002), WARM._replace(cpu=500)),
    "same CPU time": (WARM, PROCESS._replace(cpu=400), WARM),
    "later start": (WARM, PROCESS._replace(started=1003), LOST._replace(started=1003, began=1003)),
    "earlier start": (WARM, PROCESS._replace(started=997), LOST._replace(started=997, began=997)),
    "other process ID, warm restart": (WARM, PROCESS._replace(pid=2), KEPT._replace(pid=2, cpu=500)),
    "less CPU time, warm restart": (WARM, PROCESS._replace(cpu=9), KEPT._replace(cpu=9)),
    "never warm": (COLD, PROCESS._replace(started=1050), LOST._replace(started=1050, began=1050, before=9000)),
    "warm without a typical minute": (
        WARM._replace(ratio=None),
        PROCESS._replace(started=1050),
        LOST._replace(started=1050, began=1050, before=9000),
    ),
}


@pytest.mark.parametrize(("old", "process", "new"), FOLLOWS.values(), ids=FOLLOWS.keys())
def test_record_of_the_next_process(old: ProcessRecord | None, process: Seen, new: ProcessRecord) -> None:
    assert record.follow(old, process) == new


def test_only_a_typical_minute_of_a_warm_process_is_recorded() -> None:
    assert decision.with_ratio(WARM, Window(60, 2, 3)).ratio == 8000
    assert decision.with_ratio(WARM, Window(59, 200, 300)).ratio == 8000
    assert decision.with_ratio(COLD, Window(60, 200, 300)).ratio is None
    assert decision.with_ratio(WARM, Window(60, 200, 300)).ratio == 6666
    assert decision.with_ratio(WARM, Window(60, 300, 300)).ratio == 10000


@given(RECORDS)
def test_record_is_read_as_it_was_written(expected: ProcessRecord) -> None:
    content = record.encode(expected)
    assert record.decode(content) == expected
    assert len(content) < 320


@pytest.mark.parametrize("counts", ["", ",memory=64", ",memory=64,kept=2"])
def test_record_of_an_earlier_version_is_read(counts: str) -> None:
    content = f"pid=1,started=1000,cpu=400,began=1000,warm=1,ratio=8000,before=9000,took=30{counts}\n"
    assert record.decode(content.encode()) == WARM._replace(kept=2 if "kept" in counts else 0, lost=0)


CORRUPT = [
    *(b"", b"\n", b"\0" * 100, b"pid=1", b"pid=1,started=1,cpu=1,began=1\n", b"{}"),
    *(b"pid=1,started=1,cpu=1,began=1,warm=2\n", b"pid=1,started=1,cpu=1,began=1,warm=1"),
    *(b"pid=1,started=1,cpu=1,began=1,warm=1,ratio=10001\n", b"pid=1,started=1,cpu=1,began=1,warm=1,before=10001\n"),
    *(b"pid=1,started=1,cpu=1,began=1,warm=1,kept=0\n", b"pid=1,started=1,cpu=1,began=1,warm=1,memory=6"),
    b"pid=1,started=1,cpu=1,began=1,warm=1,other=1\n",
    *(record.encode(WARM)[:-2], record.encode(WARM) * 2, b"\xff" + record.encode(WARM)),
]


@pytest.mark.parametrize("content", CORRUPT, ids=range(len(CORRUPT)))
def test_corrupt_state_is_no_state(content: bytes) -> None:
    assert record.decode(content) is None


DECISIONS = {
    "ratio": (Window(60, 800, 1000), 60, None, "ratio"),
    "ratio too low": (Window(60, 799, 1000), 60, None, None),
    "80 % of 80 %": (Window(60, 64, 100), 60, 8000, "ratio"),
    "less than 80 % of 80 %": (Window(60, 639, 1000), 60, 8000, None),
    "warm restart after 10 s": (Window(10, 100, 100), 12, 9000, "ratio"),
    "before 10 s": (Window(9.9, 10000, 10000), 12, None, None),
    "too few gets in 10 s": (Window(10, 99, 99), 12, None, None),
    "too few gets in a minute": (Window(60, 0, 99), 60, None, "quiet"),
    "too few gets in less than a minute": (Window(59.9, 99, 99), 60, None, None),
    "enough gets": (Window(60, 0, 100), 60, None, None),
    "timeout": (Window(60, 0, 1000), 900, None, "timeout"),
    "before the timeout": (Window(60, 0, 1000), 899, None, None),
    "timeout without samples": (Window(0, 0, 0), 900, None, "timeout"),
    "ratio at the timeout": (Window(60, 900, 1000), 900, None, "ratio"),
    "predecessor without hits": (Window(10, 0, 100), 20, 0, "ratio"),
}


@pytest.mark.parametrize(("found", "elapsed", "before", "reason"), DECISIONS.values(), ids=DECISIONS.keys())
def test_decision(found: Window, elapsed: int, before: int | None, reason: str | None) -> None:
    assert decide(GATE, found, elapsed, before) == reason


def test_slot_that_is_cold_at_its_timeout_becomes_warm_with_a_longer_timeout_or_a_lower_ratio() -> None:
    """The remedies of the alert MemcachedSlotCold. The hit ratio grows by 1 % in 30 s."""
    minutes = [(Window(60, elapsed // 30 * 10, 1000), elapsed) for elapsed in range(60, 3600, 30)]

    def first(gate: Gate) -> str | None:
        return next(filter(None, (decide(gate, window, elapsed, None) for window, elapsed in minutes)), None)

    assert first(Gate(80, 900, 100)) == "timeout"
    assert first(Gate(80, 3000, 100)) == first(Gate(25, 900, 100)) == "ratio"


def test_no_gets_are_nothing_to_wait_for_whatever_the_gate_says() -> None:
    assert decide(Gate(80, 900, 0), Window(60, 0, 0), 60, None) == "quiet"
    assert decide(Gate(80, 900, 0), Window(10, 0, 0), 60, None) is None
    assert decide(Gate(80, 900, 0), Window(10, 1, 1), 60, None) == "ratio"


@given(GATES, windows(), st.integers(-10, 2 * 10**9), RATIOS)
def test_every_process_becomes_warm_in_time(each: Gate, found: Window, elapsed: int, before: int | None) -> None:
    reason = decide(each, found, elapsed, before)
    assert reason is not None or elapsed < each.timeout
    if reason == "ratio":
        assert found.ratio is not None
        assert found.ratio >= decision.target(each, before) - 1e-9
    if reason is not None:
        assert decide(each, found, elapsed + 1, before) == reason


@given(GATES, windows(), st.integers(0, 10**9), RATIOS)
def test_sentence_is_one_short_line(each: Gate, found: Window, elapsed: int, before: int | None) -> None:
    text = decision.sentence(each, found, elapsed, before)
    assert text.startswith("not warm yet: ")
    assert text.isprintable()
    assert len(text) < 160


SENTENCES = {
    "hit ratio 43 % of 200 gets in the last minute, 64 % needed; ready in 12 min at the latest": (
        Window(62, 87, 200),
        185,
        8000,
    ),
    "hit ratio 79 % of 1000 gets in the last 15 s, 80 % needed; ready in 90 s at the latest": (
        Window(15.2, 799, 1000),
        810,
        None,
    ),
    "hit ratio 79 % of 1000 gets in the last minute, 80 % needed; ready in 0 s at the latest": (
        Window(60, 799, 1000),
        901,
        9999,
    ),
    "memcached has been observed for 5 s, 10 s needed; ready in 15 min at the latest": (Window(5, 900, 900), 7, None),
    "20 gets in the last 40 s, 100 needed for a hit ratio (minRequests); ready in 2 min at the latest": (
        Window(40, 9, 20),
        780,
        None,
    ),
}


@pytest.mark.parametrize(("text", "state"), SENTENCES.items())
def test_sentence(text: str, state: tuple[Window, int, int | None]) -> None:
    assert decision.sentence(GATE, *state) == f"not warm yet: {text}"
