"""The entry point: one sentence for each expected error, and its exit code."""

import sys

from kubectl_memcached.cli import cli
from kubectl_memcached.errors import ExitCode, PluginError

PROGRAM = "kubectl memcached"


def main() -> None:
    """Run the command line, and exit."""
    try:
        cli(prog_name=PROGRAM)
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
