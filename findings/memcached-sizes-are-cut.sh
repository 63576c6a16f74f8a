#!/usr/bin/env bash
# memcached reads the size of its memory up to the first character that is not a digit, and logs nothing.
#
# Versions:   memcached 1.6.45, from the sources in Debian. 1.6.18 does the same.
# Guess:      `-m 64g` is 64 GiB, or memcached refuses to start. `-I 1.5m` is 1.5 MiB, or an error.
# Behaviour:  -m takes only mebibytes and ignores what follows: 64g is 64 MiB, a thousandth of what was meant. -I knows k
#             and m, but not fractions: 1.5m is 1 MiB, so values of 1.2 MB are refused.
# Matters:    memcached starts, serves, and evicts nearly everything. Nothing in its log says why. Only `stats` shows the
#             size: limit_maxbytes, and item_size_max in `stats settings`.
#
# Output, seen on 2026-11-30:
#   memcached 1.6.45
#   -m 64            memory    64 MiB, largest item 1048576 bytes, 0 lines on stderr
#   -m 64g           memory    64 MiB, largest item 1048576 bytes, 0 lines on stderr
#   -m 1024m         memory  1024 MiB, largest item 1048576 bytes, 0 lines on stderr
#   -m 64 -I 1.5m    memory    64 MiB, largest item 1048576 bytes, 0 lines on stderr
#   As described: 64g is 64 MiB, and 1.5m is 1 MiB.
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
cat >check.py <<'PYTHON'
import socket
import subprocess
import sys
import time

MEMCACHED = sys.argv[1:]
MEBIBYTE = 2**20


def reply(process: subprocess.Popen[str]) -> str:
    """The statistics and the settings of a memcached that starts. It may refuse to."""
    while process.poll() is None:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect("socket")
        except OSError:
            time.sleep(0.05)
            continue
        connection.sendall(b"stats\r\nstats settings\r\nquit\r\n")
        return connection.makefile().read()
    sys.exit("CHANGED: memcached does not start with these options.")


def sizes(*options: str) -> tuple[int, int]:
    """The memory for items and the largest item, in bytes, of a memcached with these options."""
    process = subprocess.Popen([*MEMCACHED, "-s", "socket", *options], stderr=subprocess.PIPE, text=True)
    try:
        words = [line.split() for line in reply(process).splitlines()]
    finally:
        process.terminate()
        said = process.communicate()[1].splitlines()
    values = {name: int(value) for _, name, value, *_ in (each for each in words if len(each) > 2) if value.isdecimal()}
    found = values["limit_maxbytes"], values["item_size_max"]
    print(f"{' '.join(options):16} memory {found[0] // MEBIBYTE:5} MiB, largest item {found[1]} bytes, {len(said)} lines on stderr")
    return found


found = [sizes("-m", "64"), sizes("-m", "64g"), sizes("-m", "1024m"), sizes("-m", "64", "-I", "1.5m")]
if found != [(64 * MEBIBYTE, MEBIBYTE), (64 * MEBIBYTE, MEBIBYTE), (1024 * MEBIBYTE, MEBIBYTE), (64 * MEBIBYTE, MEBIBYTE)]:
    sys.exit("CHANGED: memcached reads the units, or fractions.")
print("As described: 64g is 64 MiB, and 1.5m is 1 MiB.")
PYTHON
timeout 90 python3 check.py "$memcached" -u "$(id -un)"
