"""Command line of the admission process."""

import asyncio
import logging
import sys
from pathlib import Path

import click

from memcached_api.image import is_reference
from memcached_api.memcached import DEFAULT_IMAGE
from memcached_process.addresses import Address
from memcached_process.options import process_options, set_up
from memcached_webhooks.server import Options, run

log = logging.getLogger("memcached_webhooks")


def _image(_: click.Context, parameter: click.Parameter, text: str) -> str:
    if not is_reference(text):
        raise click.BadParameter(f"{text!r} is no image reference", param=parameter)
    return text


@click.command(context_settings={"auto_envvar_prefix": "MEMCACHED_WEBHOOKS", "show_default": True})
@click.option("--webhook-port", type=click.IntRange(0, 65535), default=9443, help="Port of the admission webhooks.")
@click.option(
    "--webhook-cert-path",
    type=click.Path(path_type=Path),
    default=Path("/tmp/k8s-webhook-server/serving-certs"),  # noqa: S108 (where OLM and kubebuilder mount it)
    help="Directory of the serving certificate; read again when it changes.",
)
@click.option("--webhook-cert-name", default="tls.crt", help="File of the certificate in it.")
@click.option("--webhook-cert-key", default="tls.key", help="File of the key in it.")
@click.option(
    "--default-image",
    default=DEFAULT_IMAGE,
    envvar="RELATED_IMAGE_MEMCACHED",
    callback=_image,
    help="Image that objects without one are pinned to.",
)
@click.option(
    "--shutdown-delay",
    type=click.FloatRange(min=0),
    default=3.0,
    help="Seconds to go on serving after SIGTERM, while API servers learn that this pod goes.",
)
@process_options
def main(
    *,
    webhook_port: int,
    webhook_cert_path: Path,
    webhook_cert_name: str,
    webhook_cert_key: str,
    default_image: str,
    metrics_bind_address: Address | None,
    health_probe_bind_address: Address | None,
    shutdown_delay: float,
    log_level: str,
    log_format: str,
) -> None:
    """Answer admission reviews: fill in defaults, and refuse objects that break a rule.

    Asks Kubernetes for nothing. Every option can be given as an environment variable MEMCACHED_WEBHOOKS_<OPTION> too;
    --default-image as RELATED_IMAGE_MEMCACHED.
    """
    set_up(log_level, log_format)
    options = Options(
        default_image=default_image,
        certificate=webhook_cert_path / webhook_cert_name,
        key=webhook_cert_path / webhook_cert_key,
        webhook=Address(None, webhook_port),
        probes=health_probe_bind_address,
        metrics=metrics_bind_address,
        shutdown_delay=shutdown_delay,
    )
    try:
        asyncio.run(run(options))
    except OSError as error:
        log.error("%s", error)
        sys.exit(1)


if __name__ == "__main__":
    main()
