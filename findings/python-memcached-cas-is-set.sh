#!/usr/bin/env bash
# The cas of python-memcached overwrites a value that another client has changed, and returns True.
#
# Versions:   python-memcached 1.62, memcached 1.6.45.
# Guess:      gets remembers the token of the key, and cas fails if another client has written the key since then.
# Behaviour:  gets stores the token only if the client was made with cache_cas=True, which is not the default. Without
#             a token, cas sends a plain `set`, which succeeds.
# Matters:    A read-modify-write loop with gets and cas looks right and loses updates, exactly when two clients meet.
#             No error and no log line shows it.
#
# Output, seen on 2026-11-30:
#   memcached 1.6.45
#   Client(servers, **{}): cas after another client's set -> (True, '8')
#   Client(servers, **{'cache_cas': True}): cas after another client's set -> (False, '9')
#   As described: cas is a plain set, unless the client was made with cache_cas=True.
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
export PYTHONPATH=$folder/packages
timeout 240 python3 -m pip install --quiet --disable-pip-version-check --no-compile --target packages python-memcached==1.62
"$memcached" -u "$(id -un)" -s "$folder/memcached.socket" &
for _ in $(seq 100); do if [ -S memcached.socket ]; then break; fi; sleep 0.1; done
cat >check.py <<'PYTHON'
import sys

import memcache

results = []
for options in ({}, {"cache_cas": True}):
    mine, other = (memcache.Client(["unix:memcached.socket"], **options) for _ in range(2))
    mine.set("stock", "10")
    mine.gets("stock")
    other.set("stock", "9")
    results.append((mine.cas("stock", "8"), other.get("stock")))
    print(f"Client(servers, **{options}): cas after another client's set -> {results[-1]}")
if results != [(True, "8"), (False, "9")]:
    sys.exit("CHANGED: cas without cache_cas does something else.")
print("As described: cas is a plain set, unless the client was made with cache_cas=True.")
PYTHON
timeout 60 python3 check.py
