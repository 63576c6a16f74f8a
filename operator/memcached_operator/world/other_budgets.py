"""What plans know of the PodDisruptionBudgets of other owners, which are listed when a plan needs them."""

from dataclasses import dataclass, replace
from typing import Final

from memcached_operator.kube.selectors import Selector
from memcached_operator.world.knowledge import LISTED, UNLISTED, Knowledge, State

LIST_PERIOD: Final = 60.0
"""Seconds for which all objects of a namespace use the same list."""

RETRY_PERIOD: Final = 10.0
"""Seconds until a failed list is tried again, before the failure lasts."""


def list_period(knowledge: Knowledge) -> float:
    """Seconds from a list, or from a failed one, to the next."""
    return RETRY_PERIOD if knowledge.has_failed and not knowledge.lasts else LIST_PERIOD


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget of another owner. `selector`: selects its pods."""

    name: str
    selector: Selector


@dataclass(frozen=True)
class OtherBudgets:
    """What is known of those in a namespace. `budgets`: by name; empty unless they are listed."""

    knowledge: Knowledge = UNLISTED
    budgets: tuple[Budget, ...] = ()

    def failed(self, code: int, error: str) -> "OtherBudgets":
        """After a failed list: what was listed before is still known until the failure lasts."""
        knowledge = self.knowledge.failed(code, error)
        if knowledge.lasts:
            return OtherBudgets(replace(knowledge, state=State.UNLISTED))
        return OtherBudgets(knowledge, self.budgets)


NO_BUDGETS: Final = OtherBudgets(LISTED)
"""There are none."""
