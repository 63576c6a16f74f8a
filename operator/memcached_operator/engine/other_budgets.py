"""Lists the PodDisruptionBudgets of other owners: one list of a namespace for all of its objects."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import msgspec

from memcached_operator.kube import labels
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import POD_DISRUPTION_BUDGETS, Key, Object, controller_of, nested_map
from memcached_operator.kube.selectors import Selector
from memcached_operator.world.knowledge import LISTED
from memcached_operator.world.other_budgets import LIST_PERIOD, Budget, OtherBudgets, list_period

log = logging.getLogger(__name__)

LIST_TIMEOUT: Final = 10.0
"""Seconds for a list, for which the objects of the namespace that need it wait."""

MAX_LISTS: Final = 4
"""Namespaces that are listed at the same time: each list keeps a worker, of which there are 16."""

MAX_LISTED, MAX_READ, MAX_KEPT = 10_000, 2**24, 2**16
"""Budgets in a list, its bytes, and the bytes as JSON of the names and selectors that are kept. The list contains the
operator's own budgets, too. A selector of small values takes up to 13 times as much memory as its JSON."""

KEPT: Final = 2 * LIST_PERIOD
"""Seconds without a list after which what is known of a namespace is forgotten."""


@dataclass
class _Namespace:
    """What is known of a namespace. Times are in seconds of the event loop's clock."""

    known: OtherBudgets = field(default_factory=OtherBudgets)
    due: float = float("-inf")
    """The time of the next list."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while budgets are listed."""


class BudgetLists:
    """The last list of each namespace in which a plan has needed one lately."""

    def __init__(self, client: ApiClient, on_end: Callable[[Key], None]) -> None:
        """`on_end`: called after a list with each object that has waited for it."""
        self._client = client
        self._on_end = on_end
        self._namespaces: OrderedDict[str, _Namespace] = OrderedDict()
        self._listing = 0
        self._waiting: set[Key] = set()

    def current(self, namespace: str) -> OtherBudgets | None:
        """What is known; None if it must be listed again."""
        found = self._namespaces.get(namespace)
        return found.known if found is not None and _now() < found.due else None

    def must_wait(self, key: Key) -> bool:
        """Whether an object must wait for the list of another one. `on_end` is called with it then."""
        found = self._namespaces.get(key.namespace)
        if self._listing < MAX_LISTS and not (found is not None and found.lock.locked()):
            return False
        self._waiting.add(key)
        return True

    async def list(self, namespace: str) -> OtherBudgets:
        """What is known after a list, unless another object has got one meanwhile. Raises nothing."""
        found = self._namespaces.setdefault(namespace, _Namespace())
        self._listing += 1
        try:
            async with found.lock:
                if _now() >= found.due:
                    found.known, retry_after = await self._listed(namespace, found.known)
                    found.due = _now() + max(retry_after, list_period(found.known.knowledge))
                    self._namespaces.move_to_end(namespace)
                    self._forget()
        finally:
            self._listing -= 1
            waiting, self._waiting = self._waiting, set()
            for key in waiting:
                self._on_end(key)
        return found.known

    def _forget(self) -> None:
        """Forget the namespaces that have not been listed for long: the first ones."""
        before = _now() - KEPT
        while (oldest := next(iter(self._namespaces.items())))[1].due < before and not oldest[1].lock.locked():
            del self._namespaces[oldest[0]]

    async def _listed(self, namespace: str, before: OtherBudgets) -> tuple[OtherBudgets, float]:
        """What is known after a list, and the seconds that the API server wants no other one."""
        try:
            async with asyncio.timeout(LIST_TIMEOUT):
                return OtherBudgets(LISTED, await self._read(namespace)), 0.0
        except TimeoutError:
            error = ApiError(0, "Timeout", f"the list takes longer than {LIST_TIMEOUT:g} s")
        except ApiError as failure:
            error = failure
        log.warning("cannot list %s in namespace %r: %s", POD_DISRUPTION_BUDGETS.plural, namespace, error)
        return before.failed(error.code, error.message), error.retry_after or 0.0

    async def _read(self, namespace: str) -> tuple[Budget, ...]:
        """The budgets of other owners, by name. Raises ApiError, also if they exceed a limit."""
        budgets: list[Budget] = []
        listed = read = kept = 0
        async for page in self._client.list(POD_DISRUPTION_BUDGETS, namespace, limit=MAX_LISTED + 1):
            listed, read = listed + page.count, read + page.bytes
            for name, selector in _selectors(page.items):
                kept += len(name) + len(msgspec.json.encode(selector))
                _check(listed, read, kept)
                budgets.append(Budget(name, Selector(selector)))
            _check(listed, read, kept)
        return tuple(sorted(budgets, key=lambda budget: budget.name))


def _selectors(items: Iterable[Object]) -> Iterator[tuple[str, Object]]:
    """The names and selectors of those budgets that are no children. One without a selector selects no pods."""
    for obj in items:
        own = nested_map(obj, "metadata", "labels").get(labels.MANAGED_BY) == labels.MANAGER
        selector = nested_map(obj, "spec").get("selector")
        if selector is not None and not (own and controller_of(obj) is not None):
            yield obj["metadata"]["name"], selector


def _check(listed: int, read: int, kept: int) -> None:
    """Raise ApiError if a list exceeds a limit: with a part of it, a plan would not know whether it may write."""
    if listed > MAX_LISTED or read > MAX_READ or kept > MAX_KEPT:
        limits = f"{MAX_LISTED} objects, {MAX_READ >> 20} MiB or {MAX_KEPT >> 10} KiB of selectors"
        raise ApiError(413, "TooLarge", f"they exceed the limit of {limits}")


def _now() -> float:
    return asyncio.get_running_loop().time()
