"""The annotation that says how much memory memcached must have."""

import pytest

from memcached_agent.memory import target


@pytest.mark.parametrize(("text", "expected"), {"1": 1, "256": 256, "0064": 64, "1073741824": 2**30}.items())
def test_target(text: str, expected: int) -> None:
    assert target.parse_target(text) == expected


INVALID = ["", "0", "-1", "+1", "1.5", "64Mi", "64 ", "1_000", "٦٤", "1073741825", "1" * 5000, "x" * 5000, "\x1b[0m"]


@pytest.mark.parametrize("text", INVALID, ids=range(len(INVALID)))
def test_invalid_target_is_quoted_and_bounded(text: str) -> None:
    with pytest.raises(ValueError, match="memory is invalid and has no effect: ") as raised:
        target.parse_target(text)
    message = str(raised.value)
    assert repr(text[:64]) in message
    assert len(message) < 300
    assert message.isprintable()
