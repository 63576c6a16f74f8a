"""The command `memcached-agent`."""

import sys
from typing import Any, cast


def main() -> None:
    """Run the agent, or `memcached-agent sweep`.

    Exits with code 2 if the command line is invalid, and 1 if an address cannot be used or slots are not swept.
    """
    if sys.argv[1:2] == ["sweep"]:
        from memcached_agent.sweep import command  # which the agent need not load

        sys.exit(command.main(sys.argv[2:]))
    _serve()


def _serve() -> None:
    import logging  # neither this nor the options are part of a sweep, which starts faster

    from memcached_agent.logs import configure
    from memcached_agent.options import parse_options

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
        logging.getLogger("memcached_agent").error("%s", error)
        sys.exit(1)


if __name__ == "__main__":
    main()
