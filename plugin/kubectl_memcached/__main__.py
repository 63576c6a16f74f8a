"""The entry point: one sentence for each expected error, and its exit code."""

import os
import sys
from pathlib import Path

import click

from kubectl_memcached.cli import cli
from kubectl_memcached.commands.completion import KUBECTL, PROGRAM, VARIABLE
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.model.printable import one_line

NAME = "kubectl memcached"
"""In usage messages."""


def main() -> None:
    """Run the command line, and exit. Under the name kubectl_complete-memcached, print completions for kubectl."""
    completing = Path(sys.argv[0]).name == KUBECTL
    sys.exit(_code(["__complete", "--", *sys.argv[1:]] if completing else sys.argv[1:]))


def _code(arguments: list[str]) -> int:
    """Run the command line, and return the exit code. click's standalone mode would exit with 1 at Ctrl-C."""
    name = PROGRAM if VARIABLE in os.environ else NAME
    try:
        # The value is an exit code after --help and --version.
        return cli.main(arguments, prog_name=name, complete_var=VARIABLE, standalone_mode=False) or ExitCode.OK
    except PluginError as error:
        sys.stderr.write(f"error: {one_line(str(error))}\n")
        return error.code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe. Python would report the error again when it closes the output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK


if __name__ == "__main__":
    main()
