"""Two operators: the leader is paused or killed in the middle of an update, and the other one completes it."""

from collections.abc import Awaitable, Callable

from faults.background import while_running
from faults.campaigns.leaders import Pause, check_quiet, killed_for_long, resume_and_check_exit
from faults.campaigns.updates.changes import Change
from faults.campaigns.updates.kubelet import simulated_kubelet
from faults.campaigns.updates.run import SKIPPED, Update, at_write, can_resize, prepared
from faults.case import References
from faults.election import Candidate, Election, start_election, unchanged
from faults.sandbox import READY_TIMEOUT, Sandbox, wait_until_injected

LAST = 2
Takeover = Callable[[Update, Election, Candidate], Awaitable[None]]
"""Changes the spec, and lets the other operator lead in the middle of the update."""


async def run(sandbox: Sandbox, references: References, change: Change, takeover: Takeover) -> str | None:
    """The pods are updated while the leader changes: each of them once."""
    if change.resizes and not await can_resize(sandbox):
        return SKIPPED
    candidates = {"one": unchanged, "two": unchanged}
    async with simulated_kubelet(sandbox) as kubelet, start_election(sandbox, references.plane, candidates) as election:
        one, two = election.candidates.values()
        one.operator.start()
        await election.wait_for_leader(READY_TIMEOUT)
        two.operator.start()
        update = await prepared(sandbox, kubelet, change)
        async with while_running({"watching the object": update.watch()}):
            await takeover(update, election, one)
            await update.wait_complete()
            await check_quiet(election)
        update.check()
        errors = election.writes_without_lease()
        sandbox.check(not errors, f"{len(errors)} times: {'; '.join(errors[:2])}")
    return None


async def paused(update: Update, election: Election, leader: Candidate) -> None:
    """The leader is paused while it waits for the reply to its first write on a pod."""
    (active,) = leader.proxy.inject(at_write("* pods*", Pause(leader.operator)))
    await update.set_spec(update.change.then)
    await wait_until_injected(active, READY_TIMEOUT)
    await resume_and_check_exit(election, leader)


async def killed(update: Update, election: Election, leader: Candidate) -> None:
    """The leader is killed after its first write on a pod, and starts again when the other one leads."""
    await update.set_spec(update.change.then)
    await update.wait_begun(LAST)
    await killed_for_long(election, leader)
