#!/usr/bin/env bash
# msgspec omits a decoded default from its output if the number is small, and writes it if it is large.
#
# Versions:   msgspec 0.22.0, CPython 3.11 or later.
# Guess:      omit_defaults=True leaves out each field whose value equals its default, so equal objects have equal
#             encodings.
# Behaviour:  A value counts as the default only if it is the same object, or an empty list, dict or set. Decoding
#             makes new objects, except for the small integers (-5 to 256), true, false and null that CPython shares.
#             So size 3 is omitted and port 11211 is written.
# Matters:    A controller that compares, hashes or signs the encoding of a spec sees a change between an object that
#             it has built and the same object that it has read from the API server: with port 11211 and not with size
#             3. Compare the objects, not their encodings, or encode both after decoding.
#
# Output, seen on 2026-11-30:
#   msgspec 0.22.0
#   equal:                          True
#   encode(Spec()):                 {}
#   encode(decode(the same values)): {"port":11211,"identity":"Pooled"}
#   As described: equal objects have different encodings.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export PYTHONPATH=$folder/packages
timeout 240 python3 -m pip install --quiet --disable-pip-version-check --no-compile --target packages msgspec==0.22.0
cat >check.py <<'PYTHON'
import sys

import msgspec


class Spec(msgspec.Struct, omit_defaults=True, rename="camel"):
    size: int = 3
    port: int = 11211
    identity: str = "Pooled"
    node_selector: dict[str, str] = {}


print("msgspec", msgspec.__version__)
built = msgspec.json.encode(Spec())
text = b'{"size":3,"port":11211,"identity":"Pooled","nodeSelector":{}}'
decoded = msgspec.json.decode(text, type=Spec)
written = msgspec.json.encode(decoded)
print("equal:                         ", decoded == Spec())
print("encode(Spec()):                ", built.decode())
print("encode(decode(the same values)):", written.decode())
if (decoded == Spec(), built, written) != (True, b"{}", b'{"port":11211,"identity":"Pooled"}'):
    sys.exit("CHANGED: other defaults are omitted.")
print("As described: equal objects have different encodings.")
PYTHON
timeout 60 python3 check.py
