"""The command line."""

import click

from kubectl_memcached.commands.completion import complete, completion
from kubectl_memcached.commands.find import find
from kubectl_memcached.commands.flush import flush
from kubectl_memcached.commands.hotkeys import hotkeys
from kubectl_memcached.commands.options import Chosen, kubectl_options
from kubectl_memcached.commands.report import report
from kubectl_memcached.commands.ring import ring
from kubectl_memcached.commands.rollout import pause, restart, resume
from kubectl_memcached.commands.stats import stats
from kubectl_memcached.commands.status import status
from kubectl_memcached.commands.top import top
from kubectl_memcached.commands.upgrade import upgrade
from kubectl_memcached.version import version

HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=HELP)
@click.version_option(version(), prog_name="kubectl memcached")
@kubectl_options
@click.pass_context
def cli(ctx: click.Context, kubeconfig: str, context: str, namespace: str) -> None:
    """Show and operate the caches of memcached-operator, with your own rights.

    Exit codes: 0 success, 1 negative result, 2 usage, 3 kubectl or cluster, 4 missing, 5 forbidden, 6 a pod did not
    reply, 7 blocked by an option of memcached.
    """
    ctx.obj = Chosen(kubeconfig, context, namespace)


COMMANDS = (
    *(status, top, stats, find, ring, hotkeys),
    *(upgrade, restart, pause, resume, flush, report, completion, complete),
)
for command in COMMANDS:
    cli.add_command(command)
