"""The command line."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from memcached_agent.addresses import Address, is_port, parse_address
from memcached_agent.logs import FORMATS, LEVELS
from memcached_agent.parser import MAX_QUOTED, Parser
from memcached_agent.version import version

MAX_PATH: Final = 256
"""Characters of a path on the command line."""
DESCRIPTION: Final = """Serve the metrics of a memcached server to Prometheus at /metrics, and its problems at /healthz.
                     Probes use /livez and /readyz on a separate port. The agent runs in the same pod as memcached. It
                     opens one connection to memcached, and keeps it open. With --tls-directory or --users-file, it
                     makes memcached reload these files when they change. With --annotations-file, annotations of the
                     pod set until when it is not ready, and how much memory memcached gets while it runs. With
                     --arguments-file, it restarts memcached when its arguments change, and memcached keeps its items.
                     With --extstore-volume, it stops memcached when the disk of extstore refuses writes.
                     `memcached-agent sweep` is another command: it prepares slots for a change of their number.
                     """


@dataclass(frozen=True)
class TlsOptions:
    """Where memcached's certificates are, and the port on loopback where it serves them.

    `metrics`: whether the agent serves the metrics by HTTPS, with the same certificate.
    """

    directory: str
    port: int
    metrics: bool


@dataclass(frozen=True)
class Restart:
    """The file with the arguments of memcached, and that of memcached's option `-e`, after which they follow."""

    arguments: str
    items: str


@dataclass(frozen=True)
class Pod:
    """The file with the annotations of the pod, by which the agent acts, and where the agent keeps its state.

    `directory`: only this agent writes to it. It is as old as the pod: restarts of the container keep its files.
    """

    annotations: str
    directory: str
    restart: Restart | None = None


@dataclass(frozen=True)
class AgentOptions:
    """The options of the agent."""

    memcached: Address
    metrics: Address
    probes: Address
    log_level: str
    log_format: str
    tls: TlsOptions | None = None
    users_file: str | None = None
    pod: Pod | None = None
    insight: bool = False
    """Whether a second connection watches evictions, to predict hit ratios."""
    extstore: str | None = None
    """The directory of extstore's file `items`, which the agent probes."""


def parse_options(arguments: Sequence[str]) -> AgentOptions:
    """Parse the command line. Exits with code 2 and one sentence on standard error if it is invalid."""
    parser = _parser()
    values = parser.parse_args(arguments)
    if (values.tls_directory is None) != (values.tls_port is None):
        parser.error("--tls-directory and --tls-port require each other")
    if values.metrics_tls and values.tls_directory is None:
        parser.error("--metrics-tls requires --tls-directory")
    if (values.annotations_file is None) != (values.state_directory is None):
        parser.error("--annotations-file and --state-directory require each other")
    if (values.arguments_file is None) != (values.items_file is None):
        parser.error("--arguments-file and --items-file require each other")
    if values.arguments_file is not None and values.annotations_file is None:
        parser.error("--arguments-file requires --annotations-file")
    restart = values.arguments_file and Restart(values.arguments_file, values.items_file)
    pod = values.annotations_file and Pod(values.annotations_file, values.state_directory, restart)
    tls = (
        None if values.tls_directory is None else TlsOptions(values.tls_directory, values.tls_port, values.metrics_tls)
    )
    addresses = (values.memcached, values.metrics_bind_address, values.probes_bind_address)
    parts = (tls, values.users_file, pod, values.insight, values.extstore_volume)
    return AgentOptions(*addresses, values.log_level, values.log_format, *parts)


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
        "--probes-bind-address",
        metavar="[IP]:PORT",
        type=_address(host_required=False),
        default=":9151",
        help="address of /livez and /readyz, always HTTP; without IP, all addresses of IPv4 and IPv6 "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--log-level", choices=LEVELS, default="info", help="minimum severity of log lines (default: %(default)s)"
    )
    parser.add_argument(
        "--log-format", choices=FORMATS, default="text", help="format of log lines (default: %(default)s)"
    )
    parser.add_argument(
        "--insight",
        action="store_true",
        help="predict the hit ratio with more or less memory: a second connection to memcached watches which items it "
        "evicts and stores (default: one connection)",
    )
    parser.add_argument(
        "--extstore-volume",
        metavar="DIR",
        type=_path,
        help="directory of the file `items` of memcached's option ext_path. Every 5 s, the agent writes a file there, "
        "and stops memcached if the disk refuses it (default: no probe)",
    )
    _add_reloads(parser)
    _add_pod(parser)
    parser.add_argument("--version", action="version", version=f"%(prog)s {version()}", help="print the version")
    return parser


def _add_reloads(parser: Parser) -> None:
    """The options for files that memcached reloads."""
    parser.add_argument(
        "--tls-directory",
        metavar="DIR",
        type=_path,
        help="directory of memcached's tls.crt, tls.key and, optionally, ca.crt and client-ca.crt. When they change, "
        "the agent checks them and makes memcached load them (default: no TLS)",
    )
    parser.add_argument(
        "--tls-port",
        metavar="PORT",
        type=_port,
        help="port of 127.0.0.1 on which memcached serves TLS; required with --tls-directory",
    )
    parser.add_argument(
        "--metrics-tls",
        action="store_true",
        help="serve /metrics and /healthz by HTTPS only, with the certificate in --tls-directory (default: HTTP)",
    )
    parser.add_argument(
        "--users-file",
        metavar="FILE",
        type=_path,
        help="file of memcached's option -Y. The agent logs in with it and makes memcached load it when it changes "
        "(default: no login)",
    )


def _add_pod(parser: Parser) -> None:
    """The options of the pod."""
    parser.add_argument(
        "--annotations-file",
        metavar="FILE",
        type=_path,
        help="annotations of the pod, as the downward API writes them. memcached-operator.example.com/warm-up sets "
        "until when /readyz fails: hitRatio=80,timeout=900,minRequests=100. memcached-operator.example.com/memory "
        "sets how many MiB memcached gets (default: /readyz does not fail, and memcached keeps its memory)",
    )
    parser.add_argument(
        "--state-directory",
        metavar="DIR",
        type=_path,
        help="directory of the pod where the agent records what it knows of memcached; required with "
        "--annotations-file",
    )
    parser.add_argument(
        "--arguments-file",
        metavar="FILE",
        type=_path,
        help="arguments of memcached, separated by spaces. While memcached runs with different arguments, /readyz "
        "fails, and the agent sends it SIGUSR1, so that it exits and keeps its items (default: no signal)",
    )
    parser.add_argument(
        "--items-file",
        metavar="FILE",
        type=_path,
        help="file of memcached's option -e, the last one before these arguments; required with --arguments-file",
    )


def _path(text: str) -> str:
    if not text.startswith("/") or len(text) > MAX_PATH or not text.isprintable():
        raise argparse.ArgumentTypeError(
            f"{text[:MAX_QUOTED]!r}: use an absolute path of at most {MAX_PATH} characters"
        )
    return text.rstrip("/") or "/"


def _port(text: str) -> int:
    if not is_port(text):
        raise argparse.ArgumentTypeError(f"{text[:MAX_QUOTED]!r}: use a port from 1 to 65535")
    return int(text)


def _address(*, host_required: bool) -> Callable[[str], Address]:
    def parse_argument(text: str) -> Address:
        try:
            return parse_address(text, host_required=host_required)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse_argument
