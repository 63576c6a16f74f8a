"""Command line of the webhook process."""

# First, before all that imports aiohttp.
import memcached_process.lean_aiohttp  # noqa: F401  # pyright: ignore[reportUnusedImport]

# isort: split
import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

import click

from memcached_api.image import is_reference
from memcached_api.images import DEFAULT_AGENT_IMAGE, DEFAULT_IMAGE, Images
from memcached_api.kind import Kind
from memcached_api.registry import named
from memcached_process.addresses import Address
from memcached_process.options import process_options, set_up
from memcached_webhooks.server import AdmissionOptions, run

log = logging.getLogger("memcached_webhooks")


def _image(_: click.Context, parameter: click.Parameter, text: str) -> str:
    if not is_reference(text):
        raise click.BadParameter(f"{text!r}: invalid image reference", param=parameter)
    return text


def _kinds(_: click.Context, parameter: click.Parameter, text: str) -> tuple[Kind[Any], ...]:
    try:
        return named(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from error


@click.command(context_settings={"auto_envvar_prefix": "MEMCACHED_WEBHOOKS", "show_default": True})
@click.option("--webhook-port", type=click.IntRange(0, 65535), default=9443, help="Port of the admission webhooks.")
@click.option(
    "--webhook-cert-path",
    type=click.Path(path_type=Path),
    default=Path("/tmp/k8s-webhook-server/serving-certs"),  # noqa: S108 (where OLM and kubebuilder mount it)
    help="Directory of the serving certificate; reloaded when it changes.",
)
@click.option("--webhook-cert-name", default="tls.crt", help="File name of the certificate.")
@click.option("--webhook-cert-key", default="tls.key", help="File name of the key.")
@click.option(
    "--kinds",
    default="",
    callback=_kinds,
    help="Comma-separated kinds to serve, such as memcached; all kinds if empty.",
)
@click.option(
    "--default-image",
    default=DEFAULT_IMAGE,
    envvar="RELATED_IMAGE_MEMCACHED",
    callback=_image,
    help="Image to set in Memcached objects without spec.image.",
)
@click.option(
    "--agent-image",
    default=DEFAULT_AGENT_IMAGE,
    envvar="RELATED_IMAGE_AGENT",
    callback=_image,
    help="Image to set in Memcached objects that need an agent but have no spec.agent.image.",
)
@click.option(
    "--shutdown-delay",
    type=click.FloatRange(min=0),
    default=3.0,
    help="Seconds to continue serving after SIGTERM, until endpoints no longer include this pod.",
)
@process_options
def main(
    *,
    webhook_port: int,
    webhook_cert_path: Path,
    webhook_cert_name: str,
    webhook_cert_key: str,
    kinds: tuple[Kind[Any], ...],
    default_image: str,
    agent_image: str,
    metrics_bind_address: Address | None,
    health_probe_bind_address: Address | None,
    shutdown_delay: float,
    log_level: str,
    log_format: str,
) -> None:
    """Serve admission webhooks: set defaults, and deny invalid objects.

    Sends no requests to the API server. Every option can also be set by the environment variable
    MEMCACHED_WEBHOOKS_<OPTION>, --default-image by RELATED_IMAGE_MEMCACHED, and --agent-image by RELATED_IMAGE_AGENT.
    """
    set_up(log_level, log_format)
    options = AdmissionOptions(
        images=Images(default_image, agent_image),
        certificate=webhook_cert_path / webhook_cert_name,
        key=webhook_cert_path / webhook_cert_key,
        webhook=Address(None, webhook_port),
        probes=health_probe_bind_address,
        metrics=metrics_bind_address,
        shutdown_delay=shutdown_delay,
        kinds=kinds,
    )
    try:
        asyncio.run(run(options))
    except OSError as error:
        log.error("%s", error)
        sys.exit(1)


if __name__ == "__main__":
    main()
