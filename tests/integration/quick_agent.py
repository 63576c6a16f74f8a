"""The agent, whose windows take seconds: `python -m integration.quick_agent`, with the options of the agent.

Only its clock is faster, and its pauses are shorter. Timeouts of connections are those of the agent.
"""

import time
from functools import partial
from typing import Final
from unittest.mock import patch

from memcached_agent import __main__ as agent
from memcached_agent.insight import insight

SPEED: Final = 60.0
"""Seconds of the clock of the windows per second."""
CHECK: Final = 0.1
PAUSE: Final = 0.3
"""Seconds between two windows, or two attempts to watch."""


class QuickInsight(insight.Insight):
    """Watches again soon."""

    async def _step(self) -> float:
        return min(PAUSE, await super()._step())


def quick_clock() -> float:
    """Seconds of a clock that runs fast."""
    return SPEED * time.monotonic()


if __name__ == "__main__":
    with patch.object(insight, "Insight", partial(QuickInsight, clock=quick_clock, check=CHECK)):
        agent.main()
