"""Command line of the controller process."""

import asyncio
import logging
import re
import sys
from datetime import timedelta
from typing import Any

import click

from memcached_api.image import is_reference
from memcached_api.memcached import DEFAULT_IMAGE
from memcached_operator import app
from memcached_operator.kube.connection import ConnectError
from memcached_operator.runtime.lease import LeaseLostError
from memcached_process.options import process_options, set_up

log = logging.getLogger("memcached_operator")

LONGEST_LIFETIME = timedelta(days=3650)
"""More would defeat the purpose of a renewal, and much more is beyond what a certificate can say."""


def _namespaces(_: click.Context, parameter: click.Parameter, text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name):
            raise click.BadParameter(f"{name!r} is no name of a namespace; patterns are not served", param=parameter)
    return names


def _image(_: click.Context, parameter: click.Parameter, text: str) -> str:
    if not is_reference(text):
        raise click.BadParameter(f"{text!r} is no image reference", param=parameter)
    return text


@click.command(context_settings={"auto_envvar_prefix": "MEMCACHED_OPERATOR", "show_default": True})
@click.option("--leader-elect/--no-leader-elect", help="Work only while holding the lease: needed for two replicas.")
@click.option(
    "--watch-namespaces",
    default="",
    envvar="WATCH_NAMESPACE",
    callback=_namespaces,
    help="Namespaces to work in, separated by commas; empty: all.",
)
@click.option(
    "--default-image",
    default=DEFAULT_IMAGE,
    envvar="RELATED_IMAGE_MEMCACHED",
    callback=_image,
    help="Image for objects that were stored without one.",
)
@click.option(
    "--manage-certificates/--no-manage-certificates",
    help="Make and renew the webhook's certificate (where neither OLM nor cert-manager does).",
)
@click.option(
    "--certificate-lifetime", default="2160h", help="Life of a certificate made here; renewed after two thirds."
)
@click.option(
    "--sync-period",
    type=click.FloatRange(min=1),
    default=600.0,
    help="Seconds between two full lists.",
)
@click.option(
    "--max-retry-delay",
    type=click.FloatRange(min=1),
    default=300.0,
    help="Seconds between tries of what keeps failing.",
)
@process_options
def main(log_level: str, log_format: str, certificate_lifetime: str, **options: Any) -> None:
    """Keep Deployments, Services and the status of Memcached and AppService objects as the objects declare.

    Works on the cluster of KUBECONFIG, or on the one it runs in. Every option can be given as an environment variable
    MEMCACHED_OPERATOR_<OPTION> too.
    """
    set_up(log_level, log_format)
    try:
        asyncio.run(app.run(app.Options(certificate_lifetime=lifetime(certificate_lifetime), **options)))
    except (ConnectError, LeaseLostError, OSError) as error:
        log.error("%s", error)
        sys.exit(1)


def lifetime(text: str) -> timedelta:
    """`90s`, `30m` or `2160h` as a timedelta. Raises click.BadParameter for anything else."""
    seconds = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    number = int(text[:-1]) if text[:-1].isdecimal() else 0
    if not 0 < number * seconds <= LONGEST_LIFETIME.total_seconds():
        raise click.BadParameter(
            f"{text!r} is no duration of at most {LONGEST_LIFETIME.days} days: write 90s, 30m or 2160h",
            param_hint="--certificate-lifetime",
        )
    return timedelta(seconds=number * seconds)


if __name__ == "__main__":
    main()
