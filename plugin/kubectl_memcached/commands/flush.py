"""`flush`: delete all items, one pod after the other."""

import time
from typing import Final

import click

from kubectl_memcached.cluster.caches import Cache, Secrets, load, selected
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.cluster.sessions import session
from kubectl_memcached.commands.options import cluster_command, confirm, name_argument, yes_option
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.model.pods import Pod
from kubectl_memcached.model.statistics.replies import blocked

RATE: Final = 6.0
"""Pods per minute: the clients fill one for 10 s before the next one is empty, too."""


@click.command()
@name_argument
@click.option("--rate", type=click.FloatRange(0.01, 6000), default=RATE, show_default=True, help="Pods per minute.")
@yes_option
@cluster_command
def flush(kubectl: Kubectl, name: str, rate: float, yes: bool) -> None:
    """Delete all items, one pod after the other.

    Pods that are being deleted are left out. It stops at the first pod that fails: with 7 if an option of memcached
    blocks it, otherwise with 6.
    """
    cache = load(kubectl, name)
    found, secrets = selected(cache), Secrets(kubectl)
    pods = [pod for pod in found if not pod.deleting]
    if not yes:
        _ask(cache, len(pods), rate)
    for pod in found:
        if pod.deleting:
            click.echo(f"{pod.name}: is being deleted, and not flushed")
    for number, pod in enumerate(pods):
        if number:
            time.sleep(60 / rate)
        try:
            _flush(kubectl, secrets, pod)
        except PluginError as error:
            raise PluginError(f"{number} of {len(pods)} pods are flushed. {error}", error.code) from None
        click.echo(f"{pod.name}: flushed, {number + 1} of {len(pods)}")


def _ask(cache: Cache, number: int, rate: float) -> None:
    """Ask whether the items may be deleted. Raises PluginError if the user answers no, or there is no terminal."""
    question = (
        f"Delete all items of {number} pods of Memcached {cache.namespace}/{cache.name}, "
        f"one pod every {60 / rate:.0f} s?"
    )
    confirm(question, "Nothing is deleted")


def _flush(kubectl: Kubectl, secrets: Secrets, pod: Pod) -> None:
    with session(kubectl, pod, secrets) as opened, opened.memcached() as memcached:
        reply = memcached.line("flush_all")
    if sentence := blocked(reply):
        raise PluginError(f"{pod.name}: {sentence}. To empty the cache, use restart.", ExitCode.BLOCKED)
    if reply != "OK":
        raise PluginError(f"memcached of {pod.name} replied {reply[:80]!r} to flush_all", ExitCode.POD)
