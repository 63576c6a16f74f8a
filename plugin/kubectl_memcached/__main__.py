"""The entry point: one sentence for each expected error, and its exit code."""

import os
import sys
from pathlib import Path

from kubectl_memcached.cli import cli
from kubectl_memcached.commands.completion import KUBECTL, PROGRAM, VARIABLE
from kubectl_memcached.errors import ExitCode, PluginError

NAME = "kubectl memcached"
"""In usage messages."""


def main() -> None:
    """Run the command line, and exit. Under the name kubectl_complete-memcached, it answers kubectl's completion."""
    completing = Path(sys.argv[0]).name == KUBECTL
    arguments = ["__complete", "--", *sys.argv[1:]] if completing else sys.argv[1:]
    try:
        cli(arguments, prog_name=PROGRAM if VARIABLE in os.environ else NAME, complete_var=VARIABLE)
    except PluginError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.code)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of a pipe has ended; Python would report it once more at its exit
        sys.exit(ExitCode.OK)


if __name__ == "__main__":
    main()
