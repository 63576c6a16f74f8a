"""The simulated control plane and cluster, with the interface of the real one for the scripts of the campaigns."""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final, cast

from faults.interception import Interception
from faults.process import supervised
from faults.sandbox import Plane, Sandbox, Settings, arguments_of, create_namespace, user_of
from simulation.api.server import ApiServer
from simulation.clock import now
from simulation.cluster import Cluster
from simulation.intercepted import Relay
from simulation.operator import SimulatedOperator
from simulation.session import Session
from support import messages

BOOKMARKS: Final = 60.0
"""Seconds between two bookmarks of a watch."""


class SimulatedPlane(Plane):
    """A control plane in memory. It is made within the event loop that runs the case.

    `relays`, `operators`: those of the sandboxes, in the order in which they were made.
    """

    def __init__(self, seed: int = 0) -> None:
        chance = random.Random(seed)  # noqa: S311 - not a secret
        self.server = ApiServer(now, chance)
        self.server.subscribe(messages.note_stored)
        self.cluster = Cluster(self.server, chance)
        self.relays: list[Relay] = []
        self.operators: list[SimulatedOperator] = []
        self._users: list[str] = []
        self._bookmark()
        client = Session(Relay(self.server)).client()
        super().__init__(cast("Any", None), client, cast("Any", None), cast("Any", None))

    def _bookmark(self) -> None:
        """Send bookmarks, as the API server does about every minute."""
        self.server.bookmark()
        asyncio.get_running_loop().call_later(BOOKMARKS, self._bookmark)

    @asynccontextmanager
    async def sandbox(self, name: str, settings: Settings) -> AsyncGenerator[Sandbox]:
        """As of a real control plane, without its admission policies."""
        await create_namespace(self.client, name)
        async with self.proxy(user_of(name)) as (relay, address):
            operator = self.operator(name, address, settings)
            relay.kill = operator.kill
            async with supervised(operator):
                yield Sandbox(name, self.client, relay, operator, settings, address)

    @asynccontextmanager
    async def proxy(self, user: str) -> AsyncGenerator[tuple[Interception, str]]:
        """The way of one operator to the API server."""
        self.relays.append(Relay(self.server))
        self._users.append(user)
        yield self.relays[-1], str(len(self.relays) - 1)

    def operator(self, namespace: str, address: str, settings: Settings, name: str = "operator") -> SimulatedOperator:
        """An operator that works in one namespace."""
        relay, user = self.relays[int(address)], self._users[int(address)]
        environment = {"POD_NAMESPACE": namespace, "POD_NAME": name, **settings.environment}
        self.operators.append(SimulatedOperator(arguments_of(namespace, settings), environment, relay, user))
        return self.operators[-1]
