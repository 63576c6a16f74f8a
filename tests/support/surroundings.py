"""The environment of the tests: the same in every terminal, below `make`, in a Git hook and in a workflow."""

import os
from collections.abc import MutableMapping

UMASK = 0o022
"""Of files that tests and their programs create. Some are mounted into containers with another user."""
DROPPED = frozenset(
    {
        *("MAKEFLAGS", "GNUMAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEFILES", "MAKEOVERRIDES"),
        *("MAKE_TERMOUT", "MAKE_TERMERR"),
        *("LANG", "LANGUAGE", "TZ", "COLUMNS", "LINES"),
        *("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PAGER", "MANPAGER"),
        *("BASH_ENV", "ENV", "CDPATH", "GREP_OPTIONS", "GREP_COLORS", "POSIXLY_CORRECT"),
        *("PYTHONWARNINGS", "PYTHONOPTIMIZE", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONSTARTUP"),
    }
)
"""Variables that change the output of programs: `make` below another `make` reports its directory, Git and make
translate their messages, and tables follow the width of the terminal."""
DROPPED_PREFIXES = ("LC_", "GIT_")
"""A Git hook sets GIT_DIR and GIT_INDEX_FILE, which select another repository than the directory does."""
GIT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
    "GIT_TERMINAL_PROMPT": "0",
}
"""Git without the user's settings, such as signed commits, in clones of any owner."""
ADDED = {**GIT, "LC_ALL": "C.UTF-8"}


def settle(environ: MutableMapping[str, str] = os.environ) -> None:
    """Remove from the environment what changes the output of programs, and set the umask. Call it before any test."""
    for name in [name for name in environ if name in DROPPED or name.startswith(DROPPED_PREFIXES)]:
        del environ[name]
    environ.update(ADDED)
    os.umask(UMASK)
