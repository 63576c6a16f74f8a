"""The table of docs/upgrade-memcached.md: known problems of releases of memcached."""

from typing import Final

from memcached_api.known_problems import PROBLEMS, Problem, Use, text
from pages.blocks import table

HEAD: Final = ("Seen up to", "Corrected in", "What can happen before", "Caches", "Source")
COMMIT: Final = "https://github.com/memcached/memcached/commit/"


def blocks() -> dict[str, str]:
    """The generated blocks by name."""
    return {"problems": table([HEAD, *map(_row, PROBLEMS)])}


def _row(problem: Problem) -> tuple[str, ...]:
    caches = "all" if problem.use is Use.ANY else f"with `{problem.use.value}`"
    return (
        text(problem.seen),
        text(problem.corrected),
        problem.effect,
        caches,
        f"[{problem.source}]({COMMIT}{problem.source})",
    )
