"""The command `memcached-agent`."""

import logging
import os
import sys
from typing import Any, cast

from memcached_agent.logs import configure
from memcached_agent.options import parse

log = logging.getLogger("memcached_agent")


def main() -> None:
    """Run the agent. Exits with code 2 if the command line is invalid, and 1 if the address cannot be used."""
    options = parse(sys.argv[1:])
    configure(options.log_level, options.log_format)
    if not options.tls:  # asyncio imports ssl if it can, which needs 4 MiB of memory
        cast("dict[str, Any]", sys.modules).setdefault("ssl", None)
    import asyncio

    from memcached_agent.app import run

    try:
        asyncio.run(run(options))
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        log.error("cannot listen on %s: %s", options.metrics, reason)
        sys.exit(1)


if __name__ == "__main__":
    main()
