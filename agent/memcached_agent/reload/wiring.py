"""Creates what the options need for reloads. Imports `ssl` only if certificates are among them."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from memcached_agent.memcached.client import MemcachedClient
from memcached_agent.metrics import reloads
from memcached_agent.metrics.exposition import Family
from memcached_agent.options import AgentOptions
from memcached_agent.reload.watcher import FileWatcher

if TYPE_CHECKING:
    from memcached_agent.reload.certificates import Certificates
    from memcached_agent.reload.users import Accounts


class Reloads:
    """The client of memcached, and the watchers of the files in `options`.

    `certificates`: None without TLS. `users`: with which to log in; None without a login.
    """

    def __init__(self, options: AgentOptions) -> None:
        accounts = _accounts(options)
        self.users: Final = accounts and accounts.candidates
        self.client: Final = MemcachedClient(options.memcached, self.users)
        self.certificates = _certificates(options, self.client)
        sources = [source for source in (self.certificates, accounts) if source]
        self.watchers = [FileWatcher[Any, Any](source) for source in sources]

    async def run(self) -> None:
        """Keep the connection to memcached open, and watch the files, until cancelled."""
        await asyncio.gather(*(part.run() for part in (self.client, *self.watchers)))

    def metrics(self) -> Iterator[Family]:
        """The metrics of the watchers; none without a watcher."""
        by_source = {
            watcher.name: reloads.Reload(watcher.successful, watcher.succeeded_at) for watcher in self.watchers
        }
        return reloads.families(by_source, self.certificates.expires if self.certificates else None)


def _accounts(options: AgentOptions) -> "Accounts | None":
    if options.users_file is None:
        return None
    from memcached_agent.reload.users import Accounts

    return Accounts(options.users_file, options.memcached)


def _certificates(options: AgentOptions, client: MemcachedClient) -> "Certificates | None":
    if options.tls is None:
        return None
    from memcached_agent.reload.certificates import Certificates

    return Certificates(options.tls.directory, options.tls.port, client)
