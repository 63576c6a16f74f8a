#!/usr/bin/env bash
# Two alerts that differ only in a label that the rule sets freeze the alerts of all other series.
#
# Versions:   Prometheus 2.42.0 (of Debian bookworm).
# Guess:      A rule with `labels: {severity: critical}` overwrites the label severity of its series. Two series that
#             differ only there become one alert, or both are left out. The others are not concerned.
# Behaviour:  The evaluation of the whole rule fails. On the page of alerts and in the API, those that fired before stay
#             as they are, also when their series are fine again, and no new one fires. By its source, Prometheus does not
#             send them again either. `promtool check rules` finds nothing, because it depends on the data.
# Matters:    One exporter with two series that differ only in a label severity, or in any other label that a rule sets,
#             switches off the alert for all teams, while its page shows an old state. Aggregate by fixed labels
#             (`max by (namespace, pod)`), and watch prometheus_rule_evaluation_failures_total.
#
# Output, seen on 2026-11-30:
#   prometheus, version 2.42.0+ds (branch: debian/sid, revision: 2.42.0+ds-5+deb12u1)
#     SUCCESS: 1 rules found
#   a is full                                            rule ok  fires for a
#   a is full, b with two values of severity             rule err fires for a
#   a is fine, c is full, b as before                    rule err fires for a
#   a is fine, c is full, b is gone                      rule ok  fires for c
#   As described: while two alerts are equal, the alert of a stays and that of c does not fire.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
timeout 120 apt-get -qq download prometheus=2.42.0+ds-5+deb12u1 2>download.log || { cat download.log; exit 1; }
dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/prometheus ./usr/bin/promtool
usr/bin/prometheus --version | sed -n 1p
cat >rules.yaml <<'YAML'
groups:
- name: caches
  rules:
  - {alert: QueueFull, expr: queue_depth > 5, labels: {severity: critical}}
YAML
usr/bin/promtool check rules rules.yaml | sed -n 2p
cat >check.py <<'PYTHON'
import http.server
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

metrics: list[str] = []


class Target(http.server.BaseHTTPRequestHandler):
    """An exporter with the present metrics."""

    def do_GET(self) -> None:
        body = "".join(f"queue_depth{line}\n" for line in metrics).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def rule() -> tuple[str, list[str]]:
    """The health of the rule, and the caches whose alert fires."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/rules", timeout=5) as response:
        found = json.load(response)["data"]["groups"][0]["rules"][0]
    return found["health"], sorted(alert["labels"]["cache"] for alert in found.get("alerts", []))


def shown(text: str, *lines: str) -> list[str]:
    """Expose these metrics, and return the caches whose alert fires after some evaluations."""
    metrics[:] = lines
    time.sleep(6)
    health, alerts = rule()
    print(f"{text:52} rule {health:3} fires for {', '.join(alerts)}")
    return alerts


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
options = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address=127.0.0.1:{port}"]
with open("log", "wb") as log, subprocess.Popen(["usr/bin/prometheus", *options], stderr=log) as prometheus:
    try:
        for _ in range(60):
            try:
                rule()
                break
            except (urllib.error.URLError, ConnectionError, IndexError, KeyError):
                time.sleep(0.5)
        equal = '{cache="b",severity="low"} 9', '{cache="b",severity="high"} 9'
        first = shown("a is full", '{cache="a"} 9')
        second = shown("a is full, b with two values of severity", '{cache="a"} 9', *equal)
        third = shown("a is fine, c is full, b as before", '{cache="a"} 0', '{cache="c"} 9', *equal)
        last = shown("a is fine, c is full, b is gone", '{cache="a"} 0', '{cache="c"} 9')
    finally:
        prometheus.terminate()
if (first, second, third, last) != (["a"], ["a"], ["a"], ["c"]):
    sys.exit("CHANGED: the alerts of other series follow their series.")
print("As described: while two alerts are equal, the alert of a stays and that of c does not fire.")
PYTHON
timeout 90 python3 check.py
