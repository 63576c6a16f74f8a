#!/usr/bin/env bash
# A multi-get through twemproxy with a key of a dead server returns no item, and the connection of the client is closed.
#
# Versions:   twemproxy 0.5.0 (nutcracker of Debian bookworm), memcached 1.6.45.
# Guess:      A get of a key of a dead server is answered with SERVER_ERROR. A multi-get that also names keys of other servers
#             returns their items, or SERVER_ERROR too, and the connection can be used again as after a get.
# Behaviour:  The multi-get is answered with one SERVER_ERROR instead of all items, and twemproxy closes the connection, after
#             the answers to requests that it has read already. After the same error for a get or a set, the connection
#             stays open. It is the same if all keys of the multi-get are on the dead server.
# Matters:    While one of ten servers is down, 65 % of the multi-gets of ten keys return nothing, instead of nine tenths of
#             their items, and each of them costs a new connection. A client that keeps the connection gets an error for its
#             next request, too, whatever its key.
#
# Output, seen on 2026-12-01:
#   memcached 1.6.45
#   This is nutcracker-0.5.0
#     get of live keys              VALUE         the next get of a live key: VALUE
#     get of a dead key             SERVER_ERROR  the next get of a live key: VALUE
#     get of a live and a dead key  SERVER_ERROR  the next get of a live key: closed
#     get of two dead keys          SERVER_ERROR  the next get of a live key: closed
#   As described: the multi-get returns no item, and the connection is closed.
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
cat >check.py <<'PYTHON'
import os
import socket
import subprocess
import sys
import time
from pathlib import Path


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


def answers(proxy: int, *requests: str) -> list[str]:
    """The first word of the answers to requests on one connection; `closed` if there is none."""
    found: list[str] = []
    with socket.create_connection(("127.0.0.1", proxy), 10) as client:
        lines = client.makefile("rb")
        for request in requests:
            line = b""
            try:
                client.sendall(f"{request}\r\n".encode())
                line = lines.readline()
                found.append(line.decode().partition(" ")[0].strip() or "closed")
                while line.startswith(b"VALUE"):  # the item, and the next line
                    lines.readline()
                    line = lines.readline()
            except ConnectionError:
                found.append("closed")
    return found


KEYS = [f"user-{number}" for number in range(30)]
dead, *live = ports = [free_port() for _ in range(3)]
proxy, stats = free_port(), free_port()
servers = "".join(f"\n    - 127.0.0.1:{port}:1" for port in ports)
options = "hash: md5\n  distribution: ketama\n  auto_eject_hosts: false\n  timeout: 5000"
Path("proxy.yml").write_text(f"pool:\n  listen: 127.0.0.1:{proxy}\n  {options}\n  servers:{servers}\n")
words = [os.environ["PROGRAM"], "-u", os.environ["USER_NAME"], "-l", "127.0.0.1"]
programs: list[subprocess.Popen[bytes]] = []
nutcracker = ["tools/usr/sbin/nutcracker", "-c", "proxy.yml", "-a", "127.0.0.1", "-s", str(stats), "-o", "proxy.log"]
try:
    for port in live:
        programs.append(started(port, *words, "-p", str(port)))
    programs.append(started(proxy, *nutcracker))
    stored = {key: answers(proxy, f"set {key} 0 60 1\r\nx")[0] for key in KEYS}
    live_keys = [key for key, answer in stored.items() if answer == "STORED"]
    dead_keys = [key for key, answer in stored.items() if answer == "SERVER_ERROR"]
    rows = {
        "live keys": live_keys,
        "a dead key": dead_keys[:1],
        "a live and a dead key": [live_keys[0], dead_keys[0]],
        "two dead keys": dead_keys[:2],
    }
    found = {name: answers(proxy, f"get {' '.join(keys)}", f"get {live_keys[-1]}") for name, keys in rows.items()}
finally:
    for program in programs:
        program.kill()
        program.wait()
for name, (first, second) in found.items():
    print(f"  get of {name:22} {first:13} the next get of a live key: {second}")
expected = [["VALUE", "VALUE"], ["SERVER_ERROR", "VALUE"], ["SERVER_ERROR", "closed"], ["SERVER_ERROR", "closed"]]
if list(found.values()) != expected:
    sys.exit("CHANGED: twemproxy answers multi-gets with keys of a dead server in another way.")
print("As described: the multi-get returns no item, and the connection is closed.")
PYTHON
PROGRAM=$memcached USER_NAME=$(id -un) timeout --signal=INT 60 python3 check.py
