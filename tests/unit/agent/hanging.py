"""The agent on a disk that hangs: `python -m unit.agent.hanging`, with the options of the agent."""

import os
import time
from unittest.mock import patch

from memcached_agent import __main__ as agent


def hang(_: int) -> None:
    """Do not return while a test runs."""
    time.sleep(3600)


if __name__ == "__main__":
    with patch.object(os, "fsync", hang):
        agent.main()
