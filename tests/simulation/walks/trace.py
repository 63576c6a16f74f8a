"""Prints the trace of a walk, for a process with another seed of hashes: `python -m simulation.walks.trace`."""

import sys
from typing import Final

from faults.workloads import OTHER_IMAGE
from simulation.walks.actions import Delete, Drift, Foreign, Pod, Put, Refer, Scale
from simulation.walks.disturbances import Compact, Hold, Inject, Interrupt, Lease, Pass, Process, Wait
from simulation.walks.specs import Spec
from simulation.walks.strategies import Walk
from simulation.walks.walking import run_walk

EXAMPLE: Final = Walk(
    seed=1,
    operators=2,
    sync_period=5.0,
    max_retry_delay=2.0,
    resolved=True,
    steps=(
        Put("wk-a", Spec(3, "monitored")),
        Put("wk-s", Spec(2, "guards")),
        Put("wk-p", Spec(1, "port")),
        Put("wk-x", Spec(2)),
        Wait(6),
        Inject("* *", "503", None, 5.0, 2),
        Drift("deleted", 3),
        Drift("orphaned", 7),
        Put("wk-a", Spec(2, "other guards", OTHER_IMAGE)),
        Wait(3),
        Interrupt("*", "expired", cut=False),
        Compact(),
        Process(0, "killed"),
        Foreign("wk-b", 2),
        Put("wk-b", Spec(1, "plain")),
        Hold(("pods", "deployments")),
        Pod(1, held=True),
        Scale("wk-s", 3),
        Refer("wk-x", "wk-b"),
        Wait(12),
        Pass(slow=True),
        Inject("create *", "killed during", 1, None, 0),
        Delete("wk-p", "Foreground"),
        Put("wk-p", Spec(2, "plain")),
        Lease(deleted=True),
        Process(1, "terminated"),
        Wait(40),
    ),
)
"""A walk with faults of most kinds."""

if __name__ == "__main__":
    sys.stdout.write("\n".join(run_walk(EXAMPLE)))
