"""The command `memcached-agent`."""

import logging
import sys
from typing import Any, cast

from memcached_agent.logs import configure
from memcached_agent.options import parse_options

log = logging.getLogger("memcached_agent")


def main() -> None:
    """Run the agent. Exits with code 2 if the command line is invalid, and 1 if an address cannot be used."""
    options = parse_options(sys.argv[1:])
    configure(options.log_level, options.log_format)
    if not options.tls:  # asyncio imports ssl if it can, which needs 4 MiB of memory
        cast("dict[str, Any]", sys.modules).setdefault("ssl", None)
    import asyncio

    from memcached_agent.app import run
    from memcached_agent.web.server import ListenError

    try:
        asyncio.run(run(options))
    except ListenError as error:
        log.error("%s", error)
        sys.exit(1)


if __name__ == "__main__":
    main()
