"""`report`: a ZIP file for a support request, without Secrets and without keys."""

import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import click

from kubectl_memcached.cluster.caches import load
from kubectl_memcached.cluster.collecting import Report, collect
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.commands.options import cluster_command, name_argument
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.progress import progress
from kubectl_memcached.version import version

README = """\
Report of Memcached {name} in namespace {namespace}, {time}, by kubectl memcached {version}.

It contains no Secrets. Keys and values are redacted in the logs of memcached. In the objects, values of environment
variables and most annotations are redacted, and the commands, probes and messages of containers that are not the
operator's. It contains names of objects, nodes and images, addresses of pods, labels, and messages of conditions and
Events. Read it before you share it.

{missing}"""


@click.command()
@name_argument
@click.option("-f", "--file", type=click.Path(dir_okay=False, path_type=Path), default=None, help="File to write.")
@cluster_command
def report(kubectl: Kubectl, name: str, file: Path | None) -> None:
    """Write a ZIP file with objects, Events, logs and counters.

    It contains no Secrets, keys or values.
    """
    now = datetime.now(UTC)
    target = file or Path(f"memcached-{name}-{now:%Y%m%d-%H%M%S}.zip")
    if target.exists():
        raise PluginError(f"{target} exists: delete it, or choose another name with --file.", ExitCode.USAGE)
    cache = load(kubectl, name)
    with progress("Collecting", len(cache.pods)) as shown:
        collected = collect(kubectl, cache, shown.step)
    collected.files["README.txt"] = README.format(
        name=name,
        namespace=cache.namespace,
        time=f"{now:%Y-%m-%d %H:%M:%S} UTC",
        version=version(),
        missing="Not collected:\n" + "".join(f"- {sentence}\n" for sentence in collected.sentences())
        if collected.missing
        else "",
    )
    _write(target, collected, target.stem)
    click.echo(f"Wrote {target}: {len(collected.files)} files. It contains no Secrets and no keys.")
    for sentence in collected.sentences():
        click.echo(f"Not collected: {sentence}", err=True)


def _write(target: Path, collected: Report, folder: str) -> None:
    """Write the file, which only its owner may read. Raises PluginError if that is not possible."""
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(collected.files):
                archive.writestr(f"{folder}/{name}", collected.files[name])
    except OSError as error:
        raise PluginError(f"{target} cannot be written: {error.strerror}", ExitCode.USAGE) from None
