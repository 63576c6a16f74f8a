"""What is known of a resource after failed lists."""

import pytest

from memcached_operator.world.knowledge import LASTING, LISTED, UNLISTED, Knowledge


def after(*codes: int, first: Knowledge = LISTED) -> Knowledge:
    """What is known after lists that failed with these codes."""
    for code in codes:
        first = first.failed(code, f"error {code}")
    return first


@pytest.mark.parametrize("code", [0, 403, 404, 500])
@pytest.mark.parametrize("first", [UNLISTED, LISTED])
def test_failure_lasts_from_the_fifth_list_on(first: Knowledge, code: int) -> None:
    assert [after(*[code] * number, first=first).lasts for number in (LASTING - 1, LASTING)] == [False, True]
    assert after(*[code] * LASTING, first=first).state is first.state


@pytest.mark.parametrize("codes", [(403, 500), (403, 404), (500, 403), (403, 403, 0)])
def test_failure_that_lasts_stays_the_same_while_codes_alternate(codes: tuple[int, ...]) -> None:
    """Else each list would write the statuses of all objects."""
    known = after(*codes * LASTING)
    assert all(after(*(codes * 9)[:number], first=known) == known for number in range(3 * len(codes)))


def test_another_failure_that_lasts_replaces_the_first_one() -> None:
    known = after(*[500] * LASTING, *[403] * LASTING)
    assert (known.code, known.error, known.lasts, known.is_permanent) == (403, "error 403", True, True)
