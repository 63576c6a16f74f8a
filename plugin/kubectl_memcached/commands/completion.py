"""Shell completion: scripts, and kubectl's protocol for plugins."""

from collections.abc import Sequence
from typing import Final

import click
from click.shell_completion import ShellComplete, get_completion_class

PROGRAM: Final = "kubectl-memcached"
VARIABLE: Final = "_KUBECTL_MEMCACHED_COMPLETE"
KUBECTL: Final = "kubectl_complete-memcached"
"""The program that kubectl 1.26 and newer runs to complete `kubectl memcached`."""
NO_FILES: Final = ":4"
"""The last line of a response to kubectl: cobra's directive not to complete file names."""

WRAPPER: Final = f"""\
#!/bin/sh
# Save as {KUBECTL} in a directory of PATH, and make it executable.
exec {PROGRAM} __complete -- "$@"
"""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish", "kubectl"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a completion script.

    For `kubectl-memcached`: bash, zsh or fish. For `kubectl memcached`: kubectl.
    """
    if shell == "kubectl":
        click.echo(WRAPPER, nl=False)
        return
    shell_class = get_completion_class(shell)
    assert shell_class is not None  # noqa: S101 - click has a class for each choice
    root = ctx.find_root().command
    # Not `source()`, which starts bash only to learn its version.
    click.echo(ShellComplete.source(shell_class(root, {}, PROGRAM, VARIABLE)))


@click.command("__complete", hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def complete(ctx: click.Context, words: Sequence[str]) -> None:
    """Print completions of the last word in kubectl's format."""
    *before, incomplete = words or ("",)
    shell = ShellComplete(ctx.find_root().command, {}, PROGRAM, VARIABLE)
    for item in shell.get_completions(list(before), incomplete):
        if item.type == "plain":
            click.echo(f"{item.value}\t{item.help}" if item.help else str(item.value))
    click.echo(NO_FILES)
