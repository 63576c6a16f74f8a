"""The order of the measured clients."""

from bench.scenarios import CONTESTANTS, rotated


def test_each_round_starts_with_another_contestant() -> None:
    orders = [rotated(number) for number in range(len(CONTESTANTS))]
    assert orders[0] == CONTESTANTS
    for place in range(len(CONTESTANTS)):
        assert {order[place] for order in orders} == set(CONTESTANTS)
