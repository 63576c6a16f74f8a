"""Command-line options of both processes, with the names that kubebuilder uses."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
from prometheus_client import disable_created_metrics

from memcached_process.addresses import Address, parse_address
from memcached_process.logs import FORMATS, LEVELS, configure

F = TypeVar("F", bound=Callable[..., Any])


def _address(_: click.Context, parameter: click.Parameter, text: str) -> Address | None:
    try:
        return parse_address(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from error


_OPTIONS = (
    click.option(
        "--metrics-bind-address", default=":8383", callback=_address, help="Bind address of /metrics; 0 disables it."
    ),
    click.option(
        "--health-probe-bind-address",
        default=":8081",
        callback=_address,
        help="Bind address of /healthz and /readyz; 0 disables them.",
    ),
    click.option("--log-level", type=click.Choice(LEVELS), default="info", help="Minimum severity of log lines."),
    click.option("--log-format", type=click.Choice(FORMATS), default="text", help="Format of log lines."),
    click.version_option(package_name="memcached-operator"),
)


def process_options(command: F) -> F:
    """Decorator that adds the options to a click command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def set_up(log_level: str, log_format: str) -> None:
    """Configure logging, and disable the `_created` series of counters."""
    configure(log_level, log_format)
    disable_created_metrics()
