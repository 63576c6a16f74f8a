#!/usr/bin/env bash
# One idle pod, or one idle minute, makes an average of hit ratios NaN, so that its alert never fires.
#
# Versions:   Prometheus 2.42.0 (promtool of Debian bookworm).
# Guess:      avg and avg_over_time skip the pods and minutes without requests, as min and max do.
# Behaviour:  0 / 0 is NaN, and avg, sum and avg_over_time return NaN if one of their values is NaN. A comparison with
#             NaN is false, so the alert is silent and the panel empty. min, max and their _over_time forms skip NaN.
# Matters:    With per-pod hit ratios, one slot without traffic (a new one, a spare) switches off the alert for the
#             whole cache, and a quiet minute at night switches it off for the rest of the window. Divide the sums, or
#             record the ratio only where there were gets (`> 0` in the denominator).
#
# Output, seen on 2026-11-30:
#   promtool, version 2.42.0+ds (branch: debian/sid, revision: 2.42.0+ds-5+deb12u1)
#   Unit Testing:  test.yaml
#     SUCCESS
#
#   At a hit ratio of 10 %: avg(ratio) < 0.8 is silent, avg_over_time(ratio) < 0.8 is silent after a pause of minutes,
#   min(ratio) < 0.8 and sum(hits) / sum(gets) < 0.8 fire.
#   As described: avg and avg_over_time return NaN as soon as one value is 0 / 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
timeout 120 apt-get -qq download prometheus=2.42.0+ds-5+deb12u1 2>download.log || { cat download.log; exit 1; }
dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool
usr/bin/promtool --version | sed -n 1p
cat >rules.yaml <<'YAML'
groups:
- name: caches
  rules:
  - record: ratio
    expr: rate(hits[2m]) / rate(gets[2m])
  - {alert: AverageOfPods, expr: avg(ratio) < 0.8}
  - {alert: AverageOfTime, expr: 'avg_over_time(ratio{pod="pauses"}[30m]) < 0.8'}
  - {alert: LowestPod, expr: min(ratio) < 0.8}
  - {alert: RatioOfSums, expr: 'sum(rate(hits[2m])) / sum(rate(gets[2m])) < 0.8'}
YAML
cat >test.yaml <<'YAML'
rule_files: [rules.yaml]
evaluation_interval: 1m
tests:
- interval: 1m
  input_series: # hit ratios: busy 0.1; idle none; pauses 0.1, except for some minutes without gets
  - {series: 'hits{pod="busy"}', values: 0+10x60}
  - {series: 'gets{pod="busy"}', values: 0+100x60}
  - {series: 'hits{pod="idle"}', values: 0x60}
  - {series: 'gets{pod="idle"}', values: 0x60}
  - {series: 'hits{pod="pauses"}', values: 0+10x30 300x4 310+10x25}
  - {series: 'gets{pod="pauses"}', values: 0+100x30 3000x4 3100+100x25}
  promql_expr_test:
  - {expr: absent(avg(ratio) < 0.8), eval_time: 20m, exp_samples: [{labels: '{}', value: 1}]}
  - {expr: 'absent(avg_over_time(ratio{pod="pauses"}[30m]) < 0.8)', eval_time: 59m, exp_samples: [{labels: '{}', value: 1}]}
  - {expr: 'absent(avg_over_time(ratio{pod="busy"}[30m]) < 0.8)', eval_time: 59m, exp_samples: []}
  alert_rule_test:
  - {alertname: AverageOfPods, eval_time: 20m, exp_alerts: []}
  - {alertname: AverageOfTime, eval_time: 59m, exp_alerts: []}
  - {alertname: LowestPod, eval_time: 20m, exp_alerts: [{}]}
  - {alertname: RatioOfSums, eval_time: 20m, exp_alerts: [{}]}
YAML
if ! timeout 60 usr/bin/promtool test rules test.yaml; then
  echo "CHANGED: NaN has another effect."
  exit 1
fi
echo "At a hit ratio of 10 %: avg(ratio) < 0.8 is silent, avg_over_time(ratio) < 0.8 is silent after a pause of minutes,"
echo "min(ratio) < 0.8 and sum(hits) / sum(gets) < 0.8 fire."
echo "As described: avg and avg_over_time return NaN as soon as one value is 0 / 0."
