"""The client programs of `programs/`: one for each library, built with the package manager of its language.

Everything is below build/clients. The versions of the libraries are fixed by requirements/clients.txt, go.sum,
package-lock.json and pom.xml; those of php-memcached and dalli are the packages of Debian.
"""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cluster.errors import ClusterError
from cluster.public.programs import GO_ENV, ensure_go, find, install
from cluster.shell import run, succeeds

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = Path(__file__).parent / "programs"
BUILD: Final = ROOT / "build/clients"
PROGRAMS: Final = BUILD / "programs"
LOCK: Final = ROOT / "requirements/clients.txt"
DEBIAN: Final = {
    "node": "nodejs",
    "npm": "npm",
    "javac": "default-jdk-headless",
    "mvn": "maven",
    "php": "php-cli",
    "ruby": "ruby",
}
"""The Debian package of each program that the builds need, beside Python and Go."""
OTHERS: Final = {"perl": "perl", "nginx": "nginx-light"}
"""The same of programs that single tests need."""
NATIVE: Final = ["gcc", "libc6-dev", "libmemcached-dev", "python3-dev", "zlib1g-dev"]
"""What pylibmc needs to be compiled, where it has no wheel: for Python 3.12 and newer."""
DEBIAN_PYTHON: Final = "/usr/bin/python3"
"""The Python of Debian's packages."""

LIBRARIES: Final = ("pymemcache", "pylibmc", "gomemcache", "memjs", "xmemcached", "php-memcached", "dalli")
RINGS: Final = ("pymemcache with bytes", "npm's memcached")
"""Clients that docs/clients.md does not recommend. Only their rings are tested."""

Command = list[str]


def build() -> dict[str, Command]:
    """The command of each library's program, by the name of the library.

    Raises ClusterError, which says what is missing, if one cannot be built.
    """
    install(list(dict.fromkeys(package for program, package in DEBIAN.items() if not find(program))))
    return _built(_python, _go, _node, _java, php, ruby)


def build_some() -> dict[str, Command]:
    """The same for the libraries in Python, Go and PHP."""
    return _built(_python, _go, php)


def _built(*builders: Callable[[], dict[str, Command]]) -> dict[str, Command]:
    shutil.copytree(SOURCES, PROGRAMS, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    found: dict[str, Command] = {}
    for builder in builders:
        found |= builder()
    return found


def _python() -> dict[str, Command]:
    python = BUILD / "venv/bin/python"
    isolated = {"PYTHONPATH": ""}
    run([sys.executable, "-m", "venv", BUILD / "venv"], env=isolated)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r", LOCK]
    try:
        run([*pip, "--only-binary=:all:"], env=isolated)
    except ClusterError:
        if not (find("gcc") and Path("/usr/include/libmemcached/memcached.h").exists()):
            install(NATIVE)
        run(pip, env=isolated)
    programs = {"pymemcache": "pymemcache", "pylibmc": "pylibmc", "pymemcache with bytes": "pymemcache_bytes"}
    return {name: [str(python), str(PROGRAMS / f"with_{program}.py")] for name, program in programs.items()}


def _go() -> dict[str, Command]:
    program = BUILD / "gomemcache"
    run([ensure_go(), "build", "-o", program, "."], cwd=PROGRAMS / "go", env=GO_ENV)
    return {"gomemcache": [str(program)]}


def _node() -> dict[str, Command]:
    run([_program("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=PROGRAMS / "node")
    programs = {"memjs": "client.js", "npm's memcached": "npm_memcached.js"}
    return {name: [_program("node"), str(PROGRAMS / "node" / file)] for name, file in programs.items()}


def _java() -> dict[str, Command]:
    libraries, classes = BUILD / "java", BUILD / "classes"
    copy = ["dependency:copy-dependencies", f"-DoutputDirectory={libraries}", "-DincludeScope=runtime"]
    run([_program("mvn"), "--quiet", "--batch-mode", *copy], cwd=PROGRAMS / "java")
    path = f"{libraries}/*"
    run([_program("javac"), "-cp", path, "-d", classes, PROGRAMS / "java/Client.java"])
    return {"xmemcached": [_program("java"), "-cp", f"{classes}:{path}", "Client"]}


def php() -> dict[str, Command]:
    """The command of the program in PHP. Raises ClusterError if PHP or its extension is missing."""
    program = _installed("php")
    if "memcached" not in run([program, "-m"]).split():
        install(["php-memcached"])
    return {"php-memcached": [program, str(SOURCES / "php/client.php")]}


def ruby() -> dict[str, Command]:
    """The command of the program in Ruby. Raises ClusterError if Ruby or the library is missing."""
    program = _installed("ruby")
    if not succeeds([program, "-e", "require 'dalli'"]):
        install(["ruby-dalli"])
    return {"dalli": [program, str(SOURCES / "ruby/client.rb")]}


def perl() -> str:
    """Perl with Cache::Memcached::Fast. Raises ClusterError if one of them is missing."""
    program = _installed("perl")
    if not succeeds([program, "-MCache::Memcached::Fast", "-e", "1"]):
        install(["libcache-memcached-fast-perl"])
    return program


def nginx() -> str:
    """NGINX. Raises ClusterError if it is missing."""
    return _installed("nginx")


def debian_pylibmc() -> Command:
    """The command of the program with Debian's pylibmc, whose libmemcached is another one than that of the wheel."""
    if not succeeds([DEBIAN_PYTHON, "-c", "import pylibmc"]):
        install(["python3-pylibmc"])
    return [DEBIAN_PYTHON, str(PROGRAMS / "with_pylibmc.py")]


def has_wheel() -> bool:
    """Whether pip installed a wheel of pylibmc, which contains a libmemcached of its own."""
    return any((BUILD / "venv").glob("lib/*/site-packages/pylibmc.libs"))


def _installed(name: str) -> str:
    if not find(name):
        install([(DEBIAN | OTHERS)[name]])
    return _program(name)


def _program(name: str) -> str:
    found = find(name)
    if not found:
        raise ClusterError(f"the program {name} is missing: install it (on Debian: {DEBIAN.get(name, name)})")
    return found
