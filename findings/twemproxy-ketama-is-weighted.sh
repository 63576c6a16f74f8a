#!/usr/bin/env bash
# twemproxy's `distribution: ketama` is libmemcached's weighted ketama, and not its plain one.
#
# Versions:   twemproxy 0.5.0 (nutcracker of Debian bookworm), pylibmc 1.6.3 with its libmemcached, memcached 1.6.45.
# Guess:      With `hash: md5` and `distribution: ketama`, twemproxy places keys as libmemcached does with
#             MEMCACHED_BEHAVIOR_KETAMA: both name the same library as their origin, and all weights are 1.
# Behaviour:  It places all keys as MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, even if all weights are equal. With
#             MEMCACHED_BEHAVIOR_KETAMA, with or without MD5, a client looks for about two of three keys of three servers in
#             another place. If servers have names in twemproxy's file, none of these clients finds all keys.
# Matters:    Clients that are moved to twemproxy, or applications that share servers with it, miss most keys without an
#             error. A value may exist twice, and a delete removes one of them.
#
# Output, seen on 2026-12-01:
#   memcached 1.6.45
#   This is nutcracker-0.5.0
#     libmemcached with ketama          finds some keys that were set through twemproxy
#     libmemcached with ketama and MD5  finds some keys that were set through twemproxy
#     libmemcached with ketama_weighted finds all keys that were set through twemproxy
#   As described: only weighted ketama finds what was set through twemproxy.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
# memcached 1.6.45, built in the folder, or the program that the variable MEMCACHED names
memcached=${MEMCACHED:-}
if [ -z "$memcached" ]; then
  mirror=$(apt-get indextargets --format "\$(SITE)" 'Created-By: Packages' | awk '!/security/ && !found++')
  timeout 60 curl -fsSo memcached.tar.xz "${mirror%/}/pool/main/m/memcached/memcached_1.6.45.orig.tar.xz"
  sha256sum --quiet -c <<<'c383a2ad8f973b627c3de472702f46ee33b402750de4fd2d25cef65a00140110  memcached.tar.xz'
  timeout 120 apt-get -qq download libevent-dev 2>download.log || { cat download.log; exit 1; }
  dpkg-deb -x libevent-dev_*.deb . && rm usr/lib/*/*.so # the static library remains
  mkdir source && tar -C source --strip-components=1 -xf memcached.tar.xz
  machine=$(gcc -dumpmachine)
  (cd source && timeout 240 ./configure --quiet --disable-docs --disable-dependency-tracking CFLAGS=-O0 \
    --with-libevent="$folder/usr" CPPFLAGS="-I$folder/usr/include -I$folder/usr/include/$machine" \
    LDFLAGS="-L$folder/usr/lib/$machine" && timeout 240 make -s -j2 memcached) >build.log 2>&1 || { tail build.log; exit 1; }
  memcached=$folder/source/memcached
fi
"$memcached" -V
timeout 120 apt-get -qq download nutcracker=0.5.0+dfsg-2 libyaml-0-2 2>download.log || { cat download.log; exit 1; }
for package in nutcracker*.deb libyaml*.deb; do dpkg-deb -x "$package" tools; done
LD_LIBRARY_PATH=$(echo tools/usr/lib/*-linux-gnu)
export LD_LIBRARY_PATH
tools/usr/sbin/nutcracker --version 2>&1 | head -n 1
export PYTHONPATH=$folder/packages
timeout 240 python3 -m pip install --quiet --disable-pip-version-check --no-compile --root-user-action=ignore --only-binary=:all: --target packages pylibmc==1.6.3
cat >check.py <<'PYTHON'
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pylibmc


def free_port() -> int:
    """A port of loopback that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def started(port: int, *words: str) -> subprocess.Popen[bytes]:
    """A program that listens on a port."""
    program = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return program
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{words[0]} does not listen on port {port}")


KEYS = [f"user-{number}" for number in range(400)]
CLIENTS = {
    "ketama": {"ketama": True},
    "ketama and MD5": {"ketama": True, "hash": "md5"},
    "ketama_weighted": {"ketama_weighted": True},
}
ports = [free_port() for _ in range(3)]
proxy, stats = free_port(), free_port()
servers = "".join(f"\n    - 127.0.0.1:{port}:1" for port in ports)
settings = "hash: md5\n  distribution: ketama\n  timeout: 5000"
Path("proxy.yml").write_text(f"pool:\n  listen: 127.0.0.1:{proxy}\n  {settings}\n  servers:{servers}\n")
words = [os.environ["PROGRAM"], "-u", os.environ["USER_NAME"], "-l", "127.0.0.1"]
programs: list[subprocess.Popen[bytes]] = []
nutcracker = ["tools/usr/sbin/nutcracker", "-c", "proxy.yml", "-a", "127.0.0.1", "-s", str(stats), "-o", "proxy.log"]
try:
    for port in ports:
        programs.append(started(port, *words, "-p", str(port)))
    programs.append(started(proxy, *nutcracker))
    through = pylibmc.Client([f"127.0.0.1:{proxy}"])
    assert all(through.set(key, "x") for key in KEYS)
    direct = {name: pylibmc.Client([f"127.0.0.1:{port}" for port in ports], behaviors=options) for name, options in CLIENTS.items()}
    found = {name: sum(client.get(key) == "x" for key in KEYS) for name, client in direct.items()}
finally:
    for program in programs:
        program.kill()
        program.wait()
for name, number in found.items():
    share = "all keys" if number == len(KEYS) else "some keys" if number else "no key"
    print(f"  libmemcached with {name:15} finds {share} that were set through twemproxy")
if not (found["ketama_weighted"] == len(KEYS) and max(found["ketama"], found["ketama and MD5"]) < len(KEYS) * 0.6):
    sys.exit(f"CHANGED: twemproxy places keys in another way: {found}")
print("As described: only weighted ketama finds what was set through twemproxy.")
PYTHON
PROGRAM=$memcached USER_NAME=$(id -un) timeout --signal=INT 60 python3 check.py
