"""The time of the processor that a process has used."""

import os
from pathlib import Path
from typing import Final

TICK: Final = os.sysconf("SC_CLK_TCK")


def cpu_time(pid: int) -> float:
    """Seconds that a process has used so far, user and system (proc_pid_stat(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK
