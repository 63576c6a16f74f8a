"""Processes in a directory such as /proc."""

from pathlib import Path

CATCHES = 0x4203
"""SigCgt of a memcached that has started, as the kernel prints it; the bits 0 and 9 are SIGHUP and SIGUSR1."""


def process(proc: Path, number: int, name: str, *arguments: str, catches: int = CATCHES, started: int = 7) -> None:
    """Add a process, or replace it."""
    directory = proc / str(number)
    directory.mkdir(exist_ok=True)
    (directory / "comm").write_text(f"{name}\n")
    (directory / "cmdline").write_text("\0".join([name, *arguments, ""]))
    (directory / "status").write_text(f"Name:\t{name}\nSigCgt:\t{catches:016x}\nCapInh:\t0\n")
    (directory / "stat").write_text(f"{number} (a ) b) S {' '.join('0' * 18)} {started} 0 0\n")
