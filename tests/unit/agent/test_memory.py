"""The pure functions of memory growth: the annotation, the decision and its sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcached_agent.memcached.stats import parse as parse_stats
from memcached_agent.memory import decision, target
from memcached_agent.memory.decision import MEBIBYTE, Step, decide

from .samples import replies

TARGETS = st.integers(1, target.MAX_TARGET)
LIMITS = st.none() | st.integers(0, 2**63)


@pytest.mark.parametrize(("text", "expected"), {"1": 1, "256": 256, "0064": 64, "1073741824": 2**30}.items())
def test_target(text: str, expected: int) -> None:
    assert target.parse(text) == expected


INVALID = ["", "0", "-1", "+1", "1.5", "64Mi", "64 ", "1_000", "٦٤", "1073741825", "1" * 5000, "x" * 5000, "\x1b[0m"]


@pytest.mark.parametrize("text", INVALID, ids=range(len(INVALID)))
def test_invalid_target_is_quoted_and_bounded(text: str) -> None:
    with pytest.raises(ValueError, match="memory is invalid, so that it has no effect: ") as raised:
        target.parse(text)
    message = str(raised.value)
    assert repr(text[:64]) in message
    assert len(message) < 300
    assert message.isprintable()


def test_limit_in_the_statistics() -> None:
    assert decision.limit_of(parse_stats(replies()["stats"])) == 64 * MEBIBYTE
    assert decision.limit_of({}) is None
    assert decision.limit_of({"limit_maxbytes": "x"}) is None


DECISIONS: dict[str, tuple[int | None, int | None, float, Step]] = {
    # the target is 128 MiB: recorded target, limit in MiB, seconds since the target was noticed
    "first, not in effect": (None, 64, 99, "raise"),
    "first, nearly in effect": (None, 127, 99, "raise"),
    "first, in effect": (None, 128, 0, "done"),
    "first, memcached has more": (None, 256, 0, "done"),
    "first, limit not known": (None, None, 99, "unknown"),
    "changed, not in effect": (64, 64, 99, "raise"),
    "changed, just in effect": (64, 128, 0, "hold"),
    "changed, shortly before the end": (64, 128, 11.9, "hold"),
    "changed, in effect": (64, 128, 12, "done"),
    "changed, limit not known": (64, None, 99, "unknown"),
    "changed, was in effect before": (64, 256, 3, "hold"),
    "equal": (128, 128, 0, "done"),
    "equal, limit not known": (128, None, 0, "done"),
    "equal, memcached was restarted": (128, 64, 99, "raise"),
    "lower": (256, 256, 0, "done"),
    "lower, limit not known": (256, None, 0, "done"),
    "lower, memcached was restarted": (256, 64, 0, "raise"),
    "lower, and memcached never had more": (256, 128, 0, "done"),
}


@pytest.mark.parametrize(("recorded", "limit", "waited", "step"), DECISIONS.values(), ids=DECISIONS.keys())
def test_decision(recorded: int | None, limit: int | None, waited: float, step: Step) -> None:
    assert decide(128, recorded, limit and limit * MEBIBYTE, waited) == step


@given(TARGETS, st.none() | TARGETS, LIMITS, st.floats(0, 10**6))
def test_every_step_but_the_last_has_a_sentence(
    wanted: int, recorded: int | None, limit: int | None, at: float
) -> None:
    step = decide(wanted, recorded, limit, at)
    text = decision.sentence(step, wanted, limit, at)
    assert bool(text) == (step != "done")
    assert text.isprintable()
    assert len(text) < 160


SENTENCES: dict[str, tuple[Step, int | None, float]] = {
    "memory not raised yet: memcached has 64 MiB, 128 MiB needed": ("raise", 64 * MEBIBYTE, 1),
    "memory not raised yet: memcached does not report its limit, 128 MiB needed": ("unknown", None, 1),
    "memory was raised to 128 MiB; ready in 9 s": ("hold", 128 * MEBIBYTE, 3),
    "memory was raised to 128 MiB; ready in 1 s": ("hold", 128 * MEBIBYTE, 11.9),
}


@pytest.mark.parametrize(("text", "state"), SENTENCES.items())
def test_sentence(text: str, state: tuple[Step, int | None, float]) -> None:
    step, limit, waited = state
    assert decision.sentence(step, 128, limit, waited) == text
