"""Command-line options that both processes have, under the names that kubebuilder gives them."""

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
    click.option("--metrics-bind-address", default=":8383", callback=_address, help="Address of /metrics; 0 for none."),
    click.option(
        "--health-probe-bind-address",
        default=":8081",
        callback=_address,
        help="Address of /healthz and /readyz; 0 for none.",
    ),
    click.option("--log-level", type=click.Choice(LEVELS), default="info", help="Least severe messages to print."),
    click.option("--log-format", type=click.Choice(FORMATS), default="text", help="How to print them."),
    click.version_option(package_name="memcached-operator"),
)


def process_options(command: F) -> F:
    """Add the options to a function that becomes a click command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def set_up(log_level: str, log_format: str) -> None:
    """Begin a process: its log, and no `_created` series beside every counter."""
    configure(log_level, log_format)
    disable_created_metrics()
