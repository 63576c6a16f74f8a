"""Several operators of which one may write: each with a proxy of its own, and the Lease as it was at every moment."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from signal import SIGCONT
from typing import NamedTuple

from faults.calls import Entry
from faults.process import Operator, kept
from faults.proxy import Proxy, proxy
from faults.stage import Plane, Settings, Stage, until, user_of
from memcached_operator.app import LEASE_NAME
from memcached_operator.kube.client import ApiError, Client
from memcached_operator.kube.resource import LEASES, Key
from memcached_operator.runtime.leader_election import LEASE_DURATION, RETRY_PERIOD, holder_of

AT_ONCE = 15.0
"""Seconds until a standby leads that was told, on a busy machine: it looks every 2."""
EXPIRY = LEASE_DURATION + 3 * RETRY_PERIOD + AT_ONCE
"""Seconds until a standby leads that was not told: when the lease has run out."""


LATE = 0.5
"""Seconds by which a state of the Lease may be heard of late."""


class Term(NamedTuple):
    """Who held the Lease from one resourceVersion on, and when that was heard of."""

    version: int
    holder: str
    at: float


@dataclass
class Candidate:
    """One operator that stands for election."""

    name: str
    proxy: Proxy
    operator: Operator

    def process_at(self, at: float) -> tuple[str, int]:
        """Which of its processes ran at a moment."""
        return self.name, sum(began <= at for began in self.operator.began)


@dataclass
class Election:
    """Candidates by name, and every state of the Lease they stand for."""

    stage: Stage
    candidates: Mapping[str, Candidate]
    terms: list[Term] = field(default_factory=list[Term])
    _heard: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def key(self) -> Key:
        """Of the Lease."""
        return Key(LEASES, self.stage.namespace, LEASE_NAME)

    async def follow(self, client: Client) -> None:
        """Note every state of the Lease, for ever."""
        version = (await client.list(LEASES, self.stage.namespace))[1]
        while True:
            with suppress(ApiError):
                async for what, obj in client.watch(LEASES, self.stage.namespace, "", version):
                    version = obj["metadata"]["resourceVersion"]
                    if what != "BOOKMARK":
                        holder = "" if what == "DELETED" else holder_of(obj)
                        self.terms.append(Term(int(version), holder, asyncio.get_running_loop().time()))

    def leader(self) -> Candidate | None:
        """The candidate whose process holds the Lease, or held it last."""
        holders = [self._candidate(term.holder) for term in self.terms]
        return next((each for each in reversed(holders) if each is not None), None)

    def other(self, candidate: Candidate) -> Candidate:
        """The one of two that this is not."""
        return next(each for each in self.candidates.values() if each is not candidate)

    async def led(
        self, seconds: float = EXPIRY, but: str = "", since: float = 0.0, by: Candidate | None = None
    ) -> Candidate:
        """Wait until some process has taken the Lease, other than that of an identity; who it is of."""

        async def look() -> Candidate | None:
            term = self.terms[-1] if self.terms else Term(0, "", 0.0)
            found = self._candidate(term.holder)
            good = found is not None and term.holder != but and term.at >= since and by in (None, found)
            return found if good else None

        return await until(look, seconds, f"{by.name if by else 'another process'} leads")

    def identity(self) -> str:
        """Of the process that holds the Lease."""
        return self.terms[-1].holder

    def rushed(self) -> list[str]:
        """Every process that took the Lease from another before it had run out. Given up, it has."""
        return [
            f"{now.holder} took the lease {now.at - before.at:.1f} s after {before.holder} had renewed it"
            for before, now in pairwise(self.terms)
            if self._candidate(now.holder) is not None
            and before.holder not in ("", now.holder)
            and now.at - before.at < LEASE_DURATION - LATE
        ]

    def strangers(self) -> list[str]:
        """Every write by a process that did not hold the Lease when the API server carried it out.

        Both are ordered by the API server itself: by the resourceVersions of what was written.
        """
        return [
            f"{candidate.name} wrote {entry}, while {self._holder_at(entry) or 'nobody'} held the lease"
            for candidate in self.candidates.values()
            for entry in candidate.proxy.journal.writes()
            if 200 <= entry.committed < 300 and self._holder_at(entry) != candidate.process_at(entry.at)
        ]

    def writes(self, since: float = 0.0) -> list[Entry]:
        """Of all candidates, Leases apart."""
        return [entry for each in self.candidates.values() for entry in each.proxy.journal.writes(since)]

    def _holder_at(self, entry: Entry) -> tuple[str, int] | None:
        heard = [term.version for term in self.terms if term.at <= entry.at]
        # A write that changes nothing is answered with an older version: then it is the time that counts.
        version = max(int(entry.version or 0), *heard, 0)
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
async def election(stage: Stage, plane: Plane, own: "Mapping[str, Own]") -> AsyncGenerator[Election]:
    """Candidates by these names, each with settings of its own, on a stage whose operator is not used."""
    user = user_of(stage.namespace)
    async with AsyncExitStack() as stack:
        candidates: dict[str, Candidate] = {}
        for name, settings in own.items():
            here, address = await stack.enter_async_context(proxy(plane.connection, plane.pair, user))
            elect = replace(
                stage.settings,
                arguments=(*stage.settings.arguments, "--leader-elect"),
                environment={**stage.settings.environment, "POD_NAME": name},
            )
            operator = plane.operator(stage.namespace, address, settings(elect), name)
            here.kill = operator.kill
            await stack.enter_async_context(kept(operator))
            stack.callback(operator.signal, SIGCONT)
            candidates[name] = Candidate(name, here, operator)
        held = Election(stage, candidates)
        following = asyncio.create_task(held.follow(stage.client))
        stack.callback(following.cancel)
        yield held


Own = Callable[[Settings], Settings]
"""What a candidate has of its own."""


def same(settings: Settings) -> Settings:
    """A candidate as any other."""
    return settings


def with_environment(**environment: str) -> Own:
    """A candidate in another environment."""
    return lambda settings: replace(settings, environment={**settings.environment, **environment})


def with_arguments(*arguments: str) -> Own:
    """A candidate with more arguments."""
    return lambda settings: replace(settings, arguments=(*settings.arguments, *arguments))
