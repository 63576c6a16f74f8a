#!/usr/bin/env bash
# A restart of Prometheus resets alerts whose `for` is at most 10 minutes, and ends what keep_firing_for keeps.
#
# Versions:   Prometheus 2.42.0 (of Debian bookworm).
# Guess:      Prometheus restores the state of alerts from the series ALERTS_FOR_STATE, so an alert that fires still
#             fires after a restart, and keep_firing_for goes on too.
# Behaviour:  Only alerts with a `for` of more than --rules.alert.for-grace-period (10m) are restored. All others are
#             pending again for the whole `for`. An alert that only keep_firing_for keeps is inactive.
# Matters:    Many rules have `for: 5m`. A Prometheus that is OOM-killed every few minutes cannot fire them, and each
#             restart turns a firing alert into a pending one in the middle of an incident. Lower the option, and alert
#             on restarts of Prometheus from outside.
#
# Output, seen on 2026-12-01:
#   prometheus, version 2.42.0+ds (branch: debian/sid, revision: 2.42.0+ds-5+deb12u1)
#   For9s   before: firing   after a restart: pending   its start is lost
#   For9m   before: pending  after a restart: pending   its start is lost
#   For11m  before: pending  after a restart: pending   its start is restored
#   Keep    before: firing   after a restart: inactive  its start is lost
#   As described: after a restart, only the alert with more than 10 minutes of for goes on where it was.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
timeout 120 apt-get -qq download prometheus=2.42.0+ds-5+deb12u1 2>download.log || { cat download.log; exit 1; }
dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/prometheus
usr/bin/prometheus --version | sed -n 1p
cat >rules.yaml <<'YAML'
groups:
- name: caches
  rules:
  - {alert: For9s, expr: queue_depth > 5, for: 9s}
  - {alert: For9m, expr: queue_depth > 5, for: 9m}
  - {alert: For11m, expr: queue_depth > 5, for: 11m}
  - {alert: Keep, expr: peak_depth > 5, keep_firing_for: 1h}
YAML
cat >check.py <<'PYTHON'
import collections
import contextlib
import http.server
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

depths = {"queue_depth": 9, "peak_depth": 9}
Alerts = dict[str, tuple[str, str]]  # by name: state and the start of the state
NONE = ("inactive", "")


class Target(http.server.BaseHTTPRequestHandler):
    """An exporter with the present depths."""

    def do_GET(self) -> None:
        body = "".join(f"{name} {value}\n" for name, value in depths.items()).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def alerts() -> Alerts:
    """The active alerts, or none while Prometheus starts."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/alerts", timeout=5) as response:
            found = json.load(response)["data"]["alerts"]
    except (urllib.error.URLError, ConnectionError):
        found = []
    states = {each["labels"]["alertname"]: (each["state"], each["activeAt"]) for each in found}
    return collections.defaultdict(lambda: NONE, states)


def wait(condition: Callable[[Alerts], bool]) -> Alerts:
    """The alerts as soon as they fulfil the condition."""
    for _ in range(120):
        if condition(found := alerts()):
            return found
        time.sleep(0.25)
    sys.exit("CHANGED: the alerts did not get the expected state in 30 s.")


@contextlib.contextmanager
def prometheus() -> Iterator[None]:
    """A Prometheus that runs until the end of the block, with the data of those before."""
    options = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address=127.0.0.1:{port}"]
    with open("log", "ab") as log, subprocess.Popen(["usr/bin/prometheus", *options], stderr=log) as process:
        try:
            yield
        finally:
            process.terminate()


target = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Target)
threading.Thread(target=target.serve_forever, daemon=True).start()
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
with open("prometheus.yml", "w") as file:
    file.write(f"""\
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [rules.yaml]
scrape_configs:
- job_name: caches
  static_configs: [{{targets: ['127.0.0.1:{target.server_port}']}}]
""")
with prometheus():
    wait(lambda found: found["For9s"][0] == found["Keep"][0] == "firing")
    depths["peak_depth"] = 0
    time.sleep(4)
    before = alerts()
restart = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
with prometheus():
    first = wait(lambda found: found["For9s"] != NONE)
    time.sleep(4)
    after = alerts()
    after["For9s"] = first["For9s"]
results = {}
for name in ("For9s", "For9m", "For11m", "Keep"):
    start = "restored" if NONE[1] < after[name][1] < restart else "lost"
    results[name] = (before[name][0], after[name][0], start)
    print(f"{name:6}  before: {before[name][0]:7}  after a restart: {after[name][0]:8}  its start is {start}")
if results != {
    "For9s": ("firing", "pending", "lost"),
    "For9m": ("pending", "pending", "lost"),
    "For11m": ("pending", "pending", "restored"),
    "Keep": ("firing", "inactive", "lost"),
}:
    sys.exit("CHANGED: a restart has another effect on alerts.")
print("As described: after a restart, only the alert with more than 10 minutes of for goes on where it was.")
PYTHON
timeout 100 python3 check.py
