"""T8: every field of both kinds, from the CRDs: set, changed, emptied, deleted, at its bounds, invalid."""

from collections.abc import Sequence
from functools import partial

from faults.campaigns.fields.leaves import Leaf, all_leaves
from faults.campaigns.fields.run import run_steps
from faults.campaigns.fields.stage import SandboxStage
from faults.campaigns.fields.steps import Step, actions
from faults.case import Case, References
from faults.sandbox import Sandbox


async def run(sandbox: Sandbox, _: References, leaf: Leaf, steps: Sequence[Step]) -> None:
    """Run the steps with the operator of the sandbox."""
    await run_steps(SandboxStage(sandbox, leaf.resource), leaf, steps)


def cases() -> list[Case]:
    """Every action on every field. New fields of a CRD get their cases automatically."""
    return [
        # Node ports are shared by the whole cluster.
        Case(
            f"T8/{leaf.name}/{action}",
            partial(run, leaf=leaf, steps=steps),
            alone=leaf.path[-1] == "nodePort",
        )
        for leaf in all_leaves()
        for action, steps in actions(leaf).items()
    ]
