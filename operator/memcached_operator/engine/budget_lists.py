"""Lists the PodDisruptionBudgets of other owners: one list of a namespace for all of its objects."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
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

LIST_TIMEOUT, RETRY_TIMEOUT = 10.0, 2.0
"""Seconds for a list, for which the objects of the namespace that need it wait; and for one after a failed one."""

MAX_LISTS: Final = 4
"""Namespaces that are listed at the same time: each list keeps a worker, of which there are 16."""

MAX_LISTED, MAX_READ, MAX_KEPT = 10_000, 2**24, 2**17
"""Budgets in a list, its bytes, and the bytes as JSON of the names and selectors that are kept: about 1,000. The list
contains the operator's own budgets, too. A selector of small values takes up to 13 times as much memory as its JSON."""

MAX_TOTAL: Final = 2**20
"""The same bytes of all namespaces. Those whose list is the oldest are forgotten."""

KEPT: Final = 2 * LIST_PERIOD
"""Seconds without a list after which what is known of a namespace is forgotten."""


@dataclass
class _Namespace:
    """What is known of a namespace. Times are in seconds of the event loop's clock."""

    known: OtherBudgets = field(default_factory=OtherBudgets)
    due: float = float("-inf")
    """The time of the next list."""
    at: float = float("-inf")
    """The time of the last list."""
    size: int = 0
    """The bytes as JSON that are kept."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while budgets are listed."""


class BudgetLists:
    """The last list of each namespace in which a plan has needed one lately."""

    def __init__(
        self, client: ApiClient, on_end: Callable[[Key], None], own_kinds: AbstractSet[tuple[str, str]] = frozenset()
    ) -> None:
        """`on_end`: called after a list with each object that has waited for it. `own_kinds`: as for `Applier`."""
        self._client = client
        self._own_kinds = own_kinds
        self._on_end = on_end
        self._namespaces: OrderedDict[str, _Namespace] = OrderedDict()
        self._listing = 0
        self._waiting: OrderedDict[str, set[Key]] = OrderedDict()
        """The objects that wait for a list, by namespace, the first one first."""

    def current(self, namespace: str) -> OtherBudgets | None:
        """What is known; None if it must be listed again."""
        found = self._namespaces.get(namespace)
        return found.known if found is not None and _now() < found.due else None

    def last(self, namespace: str) -> OtherBudgets | None:
        """What was known after the last list, which may be due again; None without one."""
        found = self._namespaces.get(namespace)
        return found.known if found is not None and found.at > float("-inf") else None

    def must_wait(self, key: Key) -> bool:
        """Whether an object must wait for the list of another one. `on_end` is called with it then."""
        found = self._namespaces.get(key.namespace)
        if self._listing < MAX_LISTS and not (found is not None and found.lock.locked()):
            return False
        self._waiting.setdefault(key.namespace, set()).add(key)
        return True

    async def list(self, namespace: str) -> OtherBudgets:
        """What is known after a list, unless another object has got one meanwhile. Raises nothing."""
        found = self._namespaces.setdefault(namespace, _Namespace())
        self._listing += 1
        try:
            async with found.lock:
                if _now() >= found.due:
                    retry_after = await self._list(namespace, found)
                    found.at, found.due = _now(), _now() + max(retry_after, list_period(found.known.knowledge))
                    self._namespaces.move_to_end(namespace)
                    self._forget()
        finally:
            self._listing -= 1
            self._wake(namespace)
        return found.known

    def _wake(self, namespace: str) -> None:
        """Enqueue the objects that have waited for this list, and those of the next namespace."""
        keys = self._waiting.pop(namespace, set())
        if self._waiting:
            keys |= self._waiting.popitem(last=False)[1]
        for key in keys:
            self._on_end(key)

    def _forget(self) -> None:
        """Forget the namespaces that have not been listed for long, or whose lists are too large together."""
        before, total = _now() - KEPT, sum(each.size for each in self._namespaces.values())
        for name, each in [*self._namespaces.items()][:-1]:
            if each.at >= before and total <= MAX_TOTAL:
                break
            if not each.lock.locked():
                total -= each.size
                del self._namespaces[name]

    async def _list(self, namespace: str, found: _Namespace) -> float:
        """List the budgets. Returns the seconds for which the API server wants no other list."""
        seconds = RETRY_TIMEOUT if found.known.knowledge.has_failed else LIST_TIMEOUT
        try:
            async with asyncio.timeout(seconds):
                budgets, found.size = await self._read(namespace)
                found.known = OtherBudgets(LISTED, budgets)
                return 0.0
        except TimeoutError:
            error = ApiError(0, "Timeout", f"the list takes longer than {seconds:g} s")
        except ApiError as failure:
            error = failure
        log.warning("cannot list %s in namespace %r: %s", POD_DISRUPTION_BUDGETS.plural, namespace, error)
        found.known = found.known.failed(error.code, error.message)
        return error.retry_after or 0.0

    async def _read(self, namespace: str) -> tuple[tuple[Budget, ...], int]:
        """The budgets of other owners, by name, and their bytes. Raises ApiError, also if they exceed a limit."""
        budgets: list[Budget] = []
        listed = read = kept = 0
        async for page in self._client.list(POD_DISRUPTION_BUDGETS, namespace, limit=MAX_LISTED + 1):
            listed, read = listed + page.count, read + page.bytes
            for name, selector in self._selectors(page.items):
                kept += len(name) + len(msgspec.json.encode(selector))
                _check(listed, read, kept)
                budgets.append(_budget(name, selector))
            _check(listed, read, kept)
        return tuple(sorted(budgets, key=lambda budget: budget.name)), kept

    def _selectors(self, items: Iterable[Object]) -> Iterator[tuple[str, Object]]:
        """The names and selectors of those that are no children. One without a selector selects no pods."""
        for obj in items:
            selector = nested_map(obj, "spec").get("selector")
            if selector is not None and not self._is_child(obj):
                yield obj["metadata"]["name"], selector

    def _is_child(self, obj: Object) -> bool:
        """Whether an object has the operator's label, and an owner of its kinds: otherwise anyone could hide one."""
        owner = controller_of(obj)
        if owner is None or nested_map(obj, "metadata", "labels").get(labels.MANAGED_BY) != labels.MANAGER:
            return False
        return (owner.get("apiVersion", "").rpartition("/")[0], owner.get("kind")) in self._own_kinds


def _budget(name: str, selector: Object) -> Budget:
    """A budget. Raises ApiError if the API server does not validate selectors as Kubernetes does."""
    try:
        return Budget(name, Selector(selector))
    except (AttributeError, KeyError, TypeError) as error:
        raise ApiError(0, "Invalid", f"the selector of {name} is not valid") from error


def _check(listed: int, read: int, kept: int) -> None:
    """Raise ApiError if a list exceeds a limit: with a part of it, a plan would not know whether it may write."""
    limits = (
        (listed, MAX_LISTED, f"{MAX_LISTED} objects"),
        (read, MAX_READ, f"{MAX_READ >> 20} MiB"),
        (kept, MAX_KEPT, f"{MAX_KEPT >> 10} KiB of names and selectors"),
    )
    if exceeded := [text for value, limit, text in limits if value > limit]:
        raise ApiError(413, "TooLarge", f"they exceed the limit of {exceeded[0]}. Delete those that are not needed")


def _now() -> float:
    return asyncio.get_running_loop().time()
