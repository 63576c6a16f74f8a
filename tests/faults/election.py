"""Several operators with leader election: each has its own proxy, and a watch records every state of the Lease."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from signal import SIGCONT
from typing import NamedTuple

from faults.background import while_running
from faults.calls import Entry
from faults.interception import Interception
from faults.process import Operator, supervised
from faults.sandbox import Plane, Sandbox, Settings, user_of, wait_until
from memcached_operator.app import LEASE_NAME
from memcached_operator.engine.runtime.leader_election import LEASE_DURATION, RETRY_PERIOD, holder_of
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import LEASES, Key
from support.lists import listed

TAKEOVER_TIMEOUT = 15.0
"""Seconds until a standby leads after the Lease was released, on a busy machine; it reads the Lease every 2 s."""
EXPIRY_TIMEOUT = LEASE_DURATION + 3 * RETRY_PERIOD + TAKEOVER_TIMEOUT
"""Seconds until a standby leads after the Lease has expired."""


MAX_EVENT_DELAY = 0.5
"""Seconds by which a watch event of the Lease may be late."""


class Term(NamedTuple):
    """The holder of the Lease since a resourceVersion, and when the watch reported it."""

    version: int
    holder: str
    at: float


@dataclass
class Candidate:
    """One operator that takes part in the election."""

    name: str
    proxy: Interception
    operator: Operator

    def process_at(self, at: float) -> tuple[str, int]:
        """Name and number of the process that ran at this time."""
        return self.name, sum(start <= at for start in self.operator.starts)


@dataclass
class Election:
    """Candidates by name, and every state of their Lease."""

    sandbox: Sandbox
    candidates: Mapping[str, Candidate]
    terms: list[Term] = field(default_factory=list[Term])

    @property
    def key(self) -> Key:
        """Key of the Lease."""
        return Key(LEASES, self.sandbox.namespace, LEASE_NAME)

    async def watch_lease(self, client: ApiClient) -> None:
        """Record every state of the Lease, until cancelled. Raises ApiError if states may be missing."""
        version = (await listed(client, LEASES, self.sandbox.namespace))[1]
        while True:
            async for what, obj in client.watch(LEASES, self.sandbox.namespace, "", version):
                version = obj["metadata"]["resourceVersion"]
                if what != "BOOKMARK":
                    holder = "" if what == "DELETED" else holder_of(obj)
                    self.terms.append(Term(int(version), holder, asyncio.get_running_loop().time()))

    def leader(self) -> Candidate | None:
        """The candidate whose process holds the Lease, or held it last."""
        holders = [self._candidate(term.holder) for term in self.terms]
        return next((each for each in reversed(holders) if each is not None), None)

    def other(self, candidate: Candidate) -> Candidate:
        """The other one of two candidates."""
        return next(each for each in self.candidates.values() if each is not candidate)

    async def wait_for_leader(
        self, seconds: float = EXPIRY_TIMEOUT, not_identity: str = "", since: float = 0.0, by: Candidate | None = None
    ) -> Candidate:
        """Wait until a process holds the Lease, and return its candidate.

        `not_identity`: a holder that does not count. `since`: the earliest acquisition. `by`: the expected candidate.
        """

        async def poll() -> Candidate | None:
            term = self.terms[-1] if self.terms else Term(0, "", 0.0)
            found = self._candidate(term.holder)
            good = found is not None and term.holder != not_identity and term.at >= since and by in (None, found)
            return found if good else None

        return await wait_until(poll, seconds, f"{by.name if by else 'another process'} leads")

    def identity(self) -> str:
        """Identity of the process that holds the Lease."""
        return self.terms[-1].holder

    def early_acquisitions(self) -> list[str]:
        """Every acquisition of another process's Lease before it expired. A released Lease has no holder."""
        return [
            f"{now.holder} acquired the Lease {now.at - before.at:.1f} s after {before.holder} renewed it"
            for before, now in pairwise(self.terms)
            if self._candidate(now.holder) is not None
            and before.holder not in ("", now.holder)
            and now.at - before.at < LEASE_DURATION - MAX_EVENT_DELAY
        ]

    def writes_without_lease(self, deletions: Sequence[float] = ()) -> list[str]:
        """Every write by a process that did not hold the Lease when the API server executed it.

        The resourceVersions of Leases and written objects give the order. `deletions`: when a user deleted the Lease.
        Another process can create it at once, before the previous holder notices that.
        """
        return [
            f"{candidate.name} wrote {entry} while the holder of the Lease was {self._holder_at(entry)}"
            for candidate in self.candidates.values()
            for entry in candidate.proxy.requests.writes()
            if 200 <= entry.committed < 300 and self._holder_at(entry) != candidate.process_at(entry.at)
            if not any(0 <= entry.at - at < LEASE_DURATION for at in deletions)
        ]

    def writes(self, since: float = 0.0) -> list[Entry]:
        """Writes of all candidates, without those of Leases."""
        return [entry for each in self.candidates.values() for entry in each.proxy.requests.writes(since)]

    def _holder_at(self, entry: Entry) -> tuple[str, int] | None:
        reported = [term.version for term in self.terms if term.at <= entry.at]
        # The response to a write without effect has an older version. In this case the time decides.
        version = max(int(entry.version or 0), *reported, 0)
        found: tuple[str, int] | None = None
        for term in self.terms:
            candidate = self._candidate(term.holder)
            before = term.version <= version
            if candidate is not None and before:
                first = next(each.at for each in self.terms if each.holder == term.holder)
                found = candidate.process_at(first)
        return found

    def _candidate(self, holder: str) -> Candidate | None:
        return self.candidates.get(holder.partition("_")[0])


@asynccontextmanager
async def start_election(
    sandbox: Sandbox, plane: Plane, adjustments: "Mapping[str, Adjustment]"
) -> AsyncGenerator[Election]:
    """Create candidates with these names, each with its own settings, in a sandbox whose own operator is not used."""
    user = user_of(sandbox.namespace)
    async with AsyncExitStack() as stack:
        candidates: dict[str, Candidate] = {}
        for name, adjust in adjustments.items():
            own_proxy, address = await stack.enter_async_context(plane.proxy(user))
            elect = replace(
                sandbox.settings,
                arguments=(*sandbox.settings.arguments, "--leader-elect"),
                environment={**sandbox.settings.environment, "POD_NAME": name},
            )
            operator = plane.operator(sandbox.namespace, address, adjust(elect), name)
            own_proxy.kill = operator.kill
            await stack.enter_async_context(supervised(operator))
            stack.callback(operator.signal, SIGCONT)
            candidates[name] = Candidate(name, own_proxy, operator)
        started = Election(sandbox, candidates)
        watch = {"watching the Lease": started.watch_lease(sandbox.client)}
        await stack.enter_async_context(while_running(watch))
        yield started


Adjustment = Callable[[Settings], Settings]
"""Changes the settings of one candidate."""


def unchanged(settings: Settings) -> Settings:
    """Settings without changes."""
    return settings


def with_environment(**environment: str) -> Adjustment:
    """Settings with more environment variables."""
    return lambda settings: replace(settings, environment={**settings.environment, **environment})


def with_arguments(*arguments: str) -> Adjustment:
    """Settings with more arguments."""
    return lambda settings: replace(settings, arguments=(*settings.arguments, *arguments))
