#!/usr/bin/env bash
# Five of eight client libraries cannot use the server [::1]:11211.
#
# Versions:   pymemcache 4.0.0, python-binary-memcached 0.33.0, pylibmc 1.6.3, libmc 1.4.17; memcached 2.2.2, memjs
#             1.3.2, memcache-client 1.0.5, memcache 1.10.0 of npm; memcached 1.6.45.
# Guess:      Every maintained library accepts [ADDRESS]:PORT, the usual form of an IPv6 address with a port.
# Behaviour:  pylibmc and npm memcached look up the name `[::1]`, memjs the name `[`; libmc and memcache-client raise
#             an error about the port. pymemcache, python-binary-memcached and npm memcache work.
# Matters:    In clusters with IPv6 only, a list of the addresses of pods or Services cannot be used by these
#             libraries. Use DNS names, or another library.
#
# Output, seen on 2026-11-30:
#   memcached 1.6.45
#   pymemcache               stored
#   python-binary-memcached  stored
#   pylibmc                  failed
#   libmc                    failed
#   npm memcached            failed
#   memjs                    failed
#   memcache-client          failed
#   memcache                 stored
#   As described: five libraries take the text up to a colon for the name or the port.
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
timeout 240 python3 -m pip install --quiet --disable-pip-version-check --no-compile --target packages \
  pymemcache==4.0.0 pylibmc==1.6.3 libmc==1.4.17 python-binary-memcached==0.33.0
timeout 240 npm install --silent --no-audit --no-fund memcached@2.2.2 memjs@1.3.2 memcache-client@1.0.5 memcache@1.10.0
cat >clients.js <<'JS'
const server = process.argv[2];
const report = (name, stored) => console.log(name, stored ? 'stored' : 'failed');
const libraries = {
  'npm memcached': () => new Promise((resolve) => {
    const client = new (require('memcached'))(server, { retries: 0, timeout: 1000 });
    client.set('key', 'value', 10, (error, stored) => { resolve(!error && stored); });
  }),
  memjs: () => require('memjs').Client.create(server, { timeout: 1, retries: 0, logger: { log() {} } })
    .set('key', 'value', { expires: 10 }),
  'memcache-client': async () => (await new (require('memcache-client').MemcacheClient)({ server })
    .set('key', 'value'))[0] === 'STORED',
  memcache: () => new (require('memcache').Memcache)(server).set('key', 'value', 10),
};
(async () => {
  for (const [name, store] of Object.entries(libraries)) {
    try { report(name, await store()); } catch { report(name, false); }
  }
  process.exit();
})();
JS
cat >check.py <<'PYTHON'
import getpass
import socket
import subprocess
import sys
import time

import bmemcached
import libmc
import pylibmc
import pymemcache

with socket.socket(socket.AF_INET6) as free:
    free.bind(("::1", 0))
    port = free.getsockname()[1]
server = f"[::1]:{port}"
memcached = subprocess.Popen([sys.argv[1], "-u", getpass.getuser(), "-l", "::1", "-p", str(port)])
for _ in range(100):
    try:
        socket.create_connection(("::1", port)).close()
        break
    except OSError:
        time.sleep(0.1)
libraries = {
    "pymemcache": lambda: pymemcache.HashClient([server]).set("key", "value", noreply=False),
    "python-binary-memcached": lambda: bmemcached.Client((server,)).set("key", "value"),
    "pylibmc": lambda: pylibmc.Client([server]).set("key", "value"),
    "libmc": lambda: libmc.Client([server]).set("key", "value"),
}
results = {}
for name, store in libraries.items():
    try:
        results[name] = "stored" if store() else "failed"
    except (OSError, ValueError, pylibmc.Error):
        results[name] = "failed"
output = subprocess.run(["node", "clients.js", server], capture_output=True, text=True, timeout=60).stdout
results |= dict(line.rsplit(" ", 1) for line in output.splitlines())
memcached.terminate()
for name, result in results.items():
    print(f"{name:24} {result}")
failed = {name for name, result in results.items() if result == "failed"}
if len(results) != 8 or failed != {"pylibmc", "libmc", "npm memcached", "memjs", "memcache-client"}:
    sys.exit("CHANGED: other libraries can use the address.")
print("As described: five libraries take the text up to a colon for the name or the port.")
PYTHON
timeout 100 python3 check.py "$memcached"
