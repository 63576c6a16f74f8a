"""The options of all commands, which are accepted before and after the name of a command."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from kubectl_memcached.cluster.kubectl import Kubectl, kubectl
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.model import units
from kubectl_memcached.model.objects import PROXIES, RESOURCE, text

F = TypeVar("F", bound=Callable[..., Any])

NAMES: Final = ("kubeconfig", "context", "namespace")


def seconds_of(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:  # noqa: ARG001
    """A callback for options with a time such as `90s`, `15m` or `1h30m`. None without the option."""
    if value is None:
        return None
    if found := units.parsed_duration(value):
        return found
    raise click.BadParameter(f"{value!r} is not a time such as 90s, 15m or 1h30m.")


@dataclass
class Chosen:
    """Options before the name of the command."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""


def kubectl_options(command: F) -> F:
    """Add the options that are passed on to kubectl."""
    for option in (
        click.option("--kubeconfig", default="", metavar="FILE", help="Configuration file of kubectl."),
        click.option("--context", default="", metavar="NAME", help="Context of the configuration."),
        click.option("-n", "--namespace", default="", metavar="NAME", help="Namespace [that of the context]."),
    ):
        command = option(command)
    return command


def cluster_command(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command whose first parameter is a Kubectl with the options of the user."""

    @click.pass_obj
    @functools.wraps(command)
    def wrapped(chosen: Chosen | None, /, **values: Any) -> Any:
        before = chosen or Chosen()
        options = [values.pop(name) or getattr(before, name) for name in NAMES]
        return command(kubectl(options), **values)

    return kubectl_options(wrapped)


def names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """The names of Memcacheds with this prefix, for completion. Empty if they cannot be read."""
    return _completed(ctx, incomplete, RESOURCE)


def names_and_proxies(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """The names of Memcacheds and MemcachedProxies with this prefix, for completion: those that can be read."""
    return _completed(ctx, incomplete, RESOURCE, PROXIES)


def _completed(ctx: click.Context, incomplete: str, *resources: str) -> list[CompletionItem]:
    parent = ctx.parent.params if ctx.parent else {}
    found: set[str] = set()
    for resource in resources:
        try:
            client: Kubectl = kubectl([ctx.params.get(name) or parent.get(name) or "" for name in NAMES])
            found |= {text(cr, "metadata", "name") for cr in client.list(f"list {resource}", resource)}
        except PluginError:
            continue
    return [CompletionItem(name) for name in sorted(found) if name.startswith(incomplete)]


name_argument: Final = click.argument("name", metavar="NAME", shell_complete=names)
cache_or_proxy_argument: Final = click.argument("name", metavar="NAME", shell_complete=names_and_proxies)
output_option: Final = click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Format."
)
SECONDS: Final = 10.0
"""Seconds for which requests are watched."""
seconds_option: Final = click.option(
    "--seconds", type=click.FloatRange(1, 300), default=SECONDS, show_default=True, help="Time to watch."
)
pods_option: Final = click.option("--pod", "pods", multiple=True, metavar="POD", help="Only this pod. Can be repeated.")


def confirm(question: str, refusal: str) -> None:
    """Ask a question. `refusal`: what is true without a yes. Raises PluginError if the user answers no, or if there is
    no terminal.
    """
    try:
        confirmed = click.confirm(question, err=True)
    except click.Abort:
        raise PluginError(f"{refusal}: use --yes without a terminal.", ExitCode.USAGE) from None
    if not confirmed:
        raise PluginError(f"{refusal}.", ExitCode.NEGATIVE)


yes_option: Final = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
