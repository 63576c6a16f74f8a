"""The command line."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Never

from memcached_agent.addresses import Address, parse_address
from memcached_agent.logs import FORMATS, LEVELS
from memcached_agent.version import version

DESCRIPTION = """Serve the metrics of a memcached server to Prometheus: /metrics. /healthz names
problems; /livez and /readyz are for probes.

The agent runs beside memcached, in the same pod. It opens one connection to memcached, and keeps it open."""


@dataclass(frozen=True)
class Options:
    """The options of the agent."""

    memcached: Address
    metrics: Address
    log_level: str
    log_format: str


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> Never:
        """Print the message and exit with code 2."""
        self.exit(2, f"{self.prog}: {message} (--help describes the options)\n")


def parse(arguments: Sequence[str]) -> Options:
    """Parse the command line. Exits with code 2 and one sentence on standard error if it is invalid."""
    values = _parser().parse_args(arguments)
    return Options(values.memcached, values.metrics_bind_address, values.log_level, values.log_format)


def _parser() -> Parser:
    parser = Parser(
        prog="memcached-agent",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--memcached",
        metavar="IP:PORT",
        type=_address(host_required=True),
        default="127.0.0.1:11211",
        help="address of memcached (default: %(default)s)",
    )
    parser.add_argument(
        "--metrics-bind-address",
        metavar="[IP]:PORT",
        type=_address(host_required=False),
        default=":9150",
        help="address of /metrics and /healthz; without IP, all addresses of IPv4 and IPv6 (default: %(default)s)",
    )
    parser.add_argument(
        "--log-level", choices=LEVELS, default="info", help="minimum severity of log lines (default: %(default)s)"
    )
    parser.add_argument(
        "--log-format", choices=FORMATS, default="text", help="format of log lines (default: %(default)s)"
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version()}", help="print the version")
    return parser


def _address(*, host_required: bool) -> Callable[[str], Address]:
    def parse_argument(text: str) -> Address:
        try:
            return parse_address(text, host_required=host_required)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse_argument
