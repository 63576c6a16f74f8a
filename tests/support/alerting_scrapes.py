"""The cases of `support.alerting` in which alerts of caches fire, with slow scrapes, of which some are left out."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from memcached_operator.memcached.alerts.caches import ALERTS
from support import alerting, alerting_extstore
from support.alerting import Case

FIRING: Final = {**alerting.FIRING, **alerting_extstore.FIRING}
EVERY: Final = {2: 6, 4: 0}
"""Minutes between two scrapes, and of how many of them one is left out; 0: none. Prometheus drops a sample after 5
minutes, so that an alert needs one in less than this time."""
MINUTES: Final = 60
STEADY: Final = 24
"""Minutes in which alerts do not flap. With the first value of EVERY, a scrape is left out every 12 minutes."""
NAMES: Final = {alert.name for alert in ALERTS if "[" in alert.expr or " offset " in alert.expr}
"""The alerts that use more than the last sample."""
_VALUES: Final = re.compile(r"([0-9.]+)\+([0-9]+)x[0-9]+")
"""A constant, or a counter that grows evenly, in promtool's notation."""


def _values(text: str, minutes: int, one_of: int) -> str:
    """Values of every minute → those of scrapes every so many minutes. `one_of`: so many scrapes, one is left out."""
    match = _VALUES.fullmatch(text)
    assert match, text
    start, step = float(match[1]), float(match[2])
    lost = [one_of > 0 and number % one_of == 0 for number in range(1, MINUTES // minutes + 2)]
    return " ".join("_" if gone else f"{start + step * minutes * number:g}" for number, gone in enumerate(lost))


def _is_even(case: Case) -> bool:
    """Whether all series of a case have a value for every minute."""
    return case.firing.keys() <= NAMES and all(_VALUES.fullmatch(values) for values in case.series.values())


def _cases() -> Iterator[tuple[str, Case]]:
    for minutes, one_of in EVERY.items():
        for name, case in FIRING.items():
            if _is_even(case):
                series = {each: _values(values, minutes, one_of) for each, values in case.series.items()}
                yield (
                    f"{name}, with a scrape every {minutes} minutes",
                    case._replace(series=series, minutes=MINUTES, scrapes=minutes, steady=STEADY),
                )


SLOW: Final[Mapping[str, Case]] = dict(_cases())
