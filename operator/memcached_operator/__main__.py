"""Command line of the controller process."""

# First, before all that imports aiohttp.
import memcached_process.lean_aiohttp  # noqa: F401  # pyright: ignore[reportUnusedImport]

# isort: split
import asyncio
import logging
import re
import sys
from datetime import timedelta
from typing import Any

import click

from memcached_api.image import is_reference
from memcached_api.images import DEFAULT_AGENT_IMAGE, DEFAULT_IMAGE
from memcached_api.kind import Kind
from memcached_api.registry import named
from memcached_api.validation.common_rules import SUBDOMAIN, matches
from memcached_operator import app
from memcached_operator.engine.runtime.leader_election import LeaseLostError
from memcached_operator.kube.credentials import ConfigError
from memcached_operator.parts.dns import CLUSTER_DOMAIN
from memcached_process.options import process_options, set_up

log = logging.getLogger("memcached_operator")

MAX_CERTIFICATE_LIFETIME = timedelta(days=3650)
"""Maximum --certificate-lifetime. A longer one defeats the purpose of renewal, and a certificate
cannot contain dates after the year 9999."""

EXPECTED = (ConfigError, LeaseLostError, OSError)
"""The errors that end the process with a sentence instead of a traceback."""

MAX_DOMAIN_LENGTH = 75
"""Maximum characters of --cluster-domain: with it, the DNS name of a slot has at most the 253 that DNS allows."""


def _namespaces(_: click.Context, parameter: click.Parameter, text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name):
            raise click.BadParameter(f"{name!r}: invalid namespace name; patterns are not supported", param=parameter)
    return names


def _kinds(_: click.Context, parameter: click.Parameter, text: str) -> tuple[Kind[Any], ...]:
    try:
        return named(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from error


def _image(_: click.Context, parameter: click.Parameter, text: str) -> str:
    if not is_reference(text):
        raise click.BadParameter(f"{text!r}: invalid image reference", param=parameter)
    return text


def _domain(_: click.Context, parameter: click.Parameter, text: str) -> str:
    if len(text) > MAX_DOMAIN_LENGTH or not matches(SUBDOMAIN, text):
        raise click.BadParameter(f"{text!r}: invalid DNS domain; use a form such as {CLUSTER_DOMAIN}", param=parameter)
    return text


@click.command(context_settings={"auto_envvar_prefix": "MEMCACHED_OPERATOR", "show_default": True})
@click.option("--leader-elect/--no-leader-elect", help="Enable leader election; required for more than one replica.")
@click.option(
    "--watch-namespaces",
    default="",
    envvar="WATCH_NAMESPACE",
    callback=_namespaces,
    help="Comma-separated namespaces to watch; all namespaces if empty.",
)
@click.option(
    "--kinds",
    default="",
    callback=_kinds,
    help="Comma-separated kinds to reconcile, such as memcached; all kinds if empty.",
)
@click.option(
    "--default-image",
    default=DEFAULT_IMAGE,
    envvar="RELATED_IMAGE_MEMCACHED",
    callback=_image,
    help="Image for Memcached objects without spec.image.",
)
@click.option(
    "--agent-image",
    default=DEFAULT_AGENT_IMAGE,
    envvar="RELATED_IMAGE_AGENT",
    callback=_image,
    help="Image for the agents of Memcached objects without spec.agent.image.",
)
@click.option(
    "--cluster-domain",
    default=CLUSTER_DOMAIN,
    callback=_domain,
    help="DNS domain of the cluster, for the addresses of Memcacheds with identity Stable.",
)
@click.option(
    "--manage-certificates/--no-manage-certificates",
    help="Issue and renew the webhook certificate. Use this if neither OLM nor cert-manager does so.",
)
@click.option(
    "--certificate-lifetime",
    default="2160h",
    help="Lifetime of an issued certificate; it is renewed after two thirds of its lifetime.",
)
@click.option(
    "--sync-period",
    type=click.FloatRange(min=1),
    default=600.0,
    help="Seconds between full resyncs.",
)
@click.option(
    "--max-retry-delay",
    type=click.FloatRange(min=1),
    default=300.0,
    help="Maximum seconds between retries.",
)
@process_options
def main(log_level: str, log_format: str, certificate_lifetime: str, **options: Any) -> None:
    """Reconcile Memcached, MemcachedProxy and AppService objects.

    Connects to the cluster that KUBECONFIG selects, or to the cluster it runs in. Every option can also be set
    by the environment variable MEMCACHED_OPERATOR_<OPTION>.
    """
    set_up(log_level, log_format)
    try:
        asyncio.run(
            app.run(app.ControllerOptions(certificate_lifetime=parse_duration(certificate_lifetime), **options))
        )
    except EXPECTED as error:
        log.error("%s", error)
        sys.exit(1)


def parse_duration(text: str) -> timedelta:
    """`90s`, `30m` or `2160h` as a timedelta. Raises click.BadParameter for anything else."""
    seconds = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    number = int(text[:-1]) if text[:-1].isdecimal() else 0
    if not 0 < number * seconds <= MAX_CERTIFICATE_LIFETIME.total_seconds():
        raise click.BadParameter(
            f"{text!r}: invalid duration; use a form such as 90s, 30m or 2160h, "
            f"at most {MAX_CERTIFICATE_LIFETIME.days} days",
            param_hint="--certificate-lifetime",
        )
    return timedelta(seconds=number * seconds)


if __name__ == "__main__":
    main()
