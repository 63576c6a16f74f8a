"""Logs of memcached without keys and values: at verbosity 2, they contain each command and each key.

Only lines of a known form are kept. All others are replaced: a log can contain data of clients.
"""

import re
from typing import Final

REDACTED: Final = "[redacted]"
_SAFE: Final = re.compile(
    r"slab class +\d+: chunk size +\d+ perslab +\d+"
    r"|<\d+ server listening \([a-z-]+\)"
    r"|<\d+ new [a-z-]+ client connection\.?"
    r"|\d+: Client using the (?:ascii|binary) protocol"
    r"|<\d+ connection closed\.?"
    r"|>\d+ (?:STORED|NOT_STORED|EXISTS|NOT_FOUND|DELETED|TOUCHED|OK|RESET|END|EN|HD|NF|NS|EX|MN|VERSION [\d.]+)"
    r"|>\d+ (?:SERVER_|CLIENT_)?ERROR(?: (?:unauthenticated|authentication failure|out of memory storing object"
    r"|object too large for cache|bad data chunk|bad command line format|flush_all not allowed"
    r"|stats cachedump not allowed|metadump not allowed|watch commands not allowed))?"
    r"|accept4?\(\): [A-Za-z ]{1,60}"
    r"|Too many open connections"
    r"|Exiting normally"
    r"|Signal handled: [A-Za-z]{1,30}(?: \d+)?\.?"
    r"|failed to [a-z0-9 ]{1,60}(?:: [A-Za-z ]{1,60})?"
    r"|SSL [a-z ]{1,60}(?:: \d+)?(?: : [A-Za-z ]{1,60})*"
)
_COMMAND: Final = re.compile(r"(<\d+) ([a-z_]{1,16})(?: .*)?")
COMMANDS: Final = frozenset(
    {
        "add",
        "append",
        "cache_memlimit",
        "cas",
        "config",
        "decr",
        "delete",
        "extstore",
        "flush_all",
        "gat",
        "gats",
        "get",
        "gets",
        "incr",
        "lru",
        "lru_crawler",
        "ma",
        "md",
        "me",
        "mg",
        "misbehave",
        "mn",
        "ms",
        "prepend",
        "quit",
        "refresh_certs",
        "replace",
        "set",
        "shutdown",
        "slabs",
        "stats",
        "touch",
        "verbosity",
        "version",
        "watch",
    }
)
"""Commands whose names are kept. Their arguments are redacted."""


def redacted(log: str) -> str:
    """The log of memcached without keys. Lines end with a newline only: keys can contain other separators."""
    return "\n".join(_line(line) for line in log.split("\n"))


def _line(line: str) -> str:
    if not line or _SAFE.fullmatch(line):
        return line
    match = _COMMAND.fullmatch(line)
    if match and match[2] in COMMANDS:
        return f"{match[1]} {match[2]}{'' if line == f'{match[1]} {match[2]}' else f' {REDACTED}'}"
    return REDACTED
