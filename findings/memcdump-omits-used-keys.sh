#!/usr/bin/env bash
# memcdump lists all keys, except those that clients use.
#
# Versions:   memcdump of libmemcached 1.1.4 (of Debian bookworm), memcached 1.6.45.
# Guess:      memcdump lists all keys of a small server. What it may leave out are keys beyond the 2 MiB that memcached
#             answers for each slab class.
# Behaviour:  It sends `stats cachedump`, which reads one of the LRU lists of a class, the cold one. Keys that were read
#             twice are in the warm list, and new keys may still be in the hot list. They are left out without an error.
#             `lru_crawler metadump all` lists them all.
# Matters:    A script that copies or deletes the keys of a server, or that looks for a session, misses precisely the
#             keys that are in use, and works in a test with keys that nobody reads. Other tools and libraries that use
#             `stats cachedump` have the same gap.
#
# Output, seen on 2026-12-01:
#   memcached 1.6.45
#   memdump v1.1 (libmemcached v1.1.4)
#   memcdump                 lists 900 of 1000 keys, and 0 of the 100 that were read twice
#   lru_crawler metadump all lists 1000 of 1000 keys, and 100 of the 100 that were read twice
#   As described: memcdump lists the keys that nobody reads.
set -euo pipefail
folder=$(mktemp -d)
trap 'jobs -p | xargs -r kill 2>/dev/null || true; rm -rf "$folder"' EXIT
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
timeout 120 apt-get -qq download libmemcached-tools=1.1.4-1 libmemcached11=1.1.4-1 libhashkit2=1.1.4-1 2>download.log || { cat download.log; exit 1; }
for package in libmemcached*.deb libhashkit*.deb; do dpkg-deb -x "$package" tools; done
LD_LIBRARY_PATH=$(echo tools/usr/lib/*-linux-gnu)
export LD_LIBRARY_PATH
tools/usr/bin/memcdump --version
"$memcached" -u "$(id -un)" -s "$folder/memcached.socket" &
cat >check.py <<'PYTHON'
import os
import socket
import subprocess
import sys
import time

KEYS = [f"key-{number:03}" for number in range(1000)]
USED = set(KEYS[:100])


def memcdump() -> set[str]:
    """The keys that memcdump lists."""
    command = ["tools/usr/bin/memcdump", f"--servers={os.path.abspath('memcached.socket')}"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.split())


def metadump() -> set[str]:
    """The keys that `lru_crawler metadump all` lists."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("memcached.socket")
        client.settimeout(20)
        client.sendall(b"lru_crawler metadump all\r\n")
        lines = iter(client.makefile().readline, "END\n")
        return {line.split()[0].removeprefix("key=") for line in lines if line.startswith("key=")}


for _ in range(100):
    if os.path.exists("memcached.socket"):
        break
    time.sleep(0.1)
with socket.socket(socket.AF_UNIX) as client:
    client.connect("memcached.socket")
    answers = client.makefile()
    for line in [*(f"set {key} 0 0 1\r\nx" for key in KEYS), *(f"mg {key}" for key in sorted(USED) * 2)]:
        client.sendall(f"{line}\r\n".encode())
        answers.readline()
for _ in range(20):  # memcached's LRU thread moves the items of the hot list
    time.sleep(1)
    dumped = memcdump()
    if len(dumped) >= len(KEYS) - len(USED):
        break
time.sleep(3)
dumped, complete = memcdump(), metadump()
for name, keys in (("memcdump", dumped), ("lru_crawler metadump all", complete)):
    print(f"{name:24} lists {len(keys)} of 1000 keys, and {len(keys & USED)} of the 100 that were read twice")
if dumped != set(KEYS) - USED or complete != set(KEYS):
    sys.exit("CHANGED: memcdump lists other keys.")
print("As described: memcdump lists the keys that nobody reads.")
PYTHON
timeout 110 python3 check.py
