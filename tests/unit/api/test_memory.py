import pytest

from memcached_api.memcached import memory

MI = 2**20


@pytest.mark.parametrize(
    ("cache", "connections", "floor"),
    [(100 * MI, 1024, 134 * MI), (100 * MI, 0, 126 * MI), (10, 0, 11 + 16 * MI), (11, 0, 13 + 16 * MI)],
)
def test_floor_is_110_percent_plus_16_mi_and_8_ki_per_connection(cache: int, connections: int, floor: int):
    assert memory.minimum_limit(cache, connections) == floor


@pytest.mark.parametrize(("cache", "limit"), [(64 * MI, 128 * MI), (100 * MI, 175636480), (1000 * MI, 1405 * MI)])
def test_default_limit_is_125_percent_of_the_floor_but_at_least_128_mi(cache: int, limit: int):
    assert memory.default_limit(cache) == limit


@pytest.mark.parametrize(
    ("quantity", "expected"), [("64Mi", 64), ("2.9Mi", 2), (2 * MI, 2), ("1G", 953), ("1Gi", 1024)]
)
def test_megabytes_round_down(quantity: str | int, expected: int):
    assert memory.megabytes(quantity) == expected


@pytest.mark.parametrize(("amount", "text"), [(MI, "1Mi"), (MI + 1, "2Mi"), (0, "0Mi")])
def test_text_rounds_up(amount: int, text: str):
    assert memory.mebibytes_text(amount) == text
