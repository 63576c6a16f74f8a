#!/usr/bin/env bash
# A server name with a final dot fails verification in OpenSSL and Python, and passes in Node.js, Go and Java.
#
# Versions:   Python 3.11.7 with OpenSSL 3.0, Node.js 20.20.2. Go 1.26.8 and OpenJDK 17.0.15 verify the name as
#             Node.js does.
# Guess:      The final dot is a matter of DNS: TLS libraries remove it before they compare the name with the
#             certificate.
# Behaviour:  Node.js, Go and Java remove the dot. OpenSSL compares the name as it is, and a certificate's names have
#             no dot, so each client that is built on it without a step of its own (Python's ssl) reports a hostname
#             mismatch.
# Matters:    A final dot saves lookups through the search list of Kubernetes, and SRV answers end with one. With TLS,
#             such a list of servers works for Go clients and not for Python clients of the same cache. Remove the dot
#             from the name that is verified.
#
# Output, seen on 2026-11-30:
#   Python 3.11.7 with OpenSSL 3.0.19 27 Jan 2026
#   Node.js v20.20.2
#   python   sessions-0.sessions.shop.svc.cluster.local    verified
#   openssl  sessions-0.sessions.shop.svc.cluster.local    verified
#   node     sessions-0.sessions.shop.svc.cluster.local    verified
#   python   sessions-0.sessions.shop.svc.cluster.local.   hostname mismatch
#   openssl  sessions-0.sessions.shop.svc.cluster.local.   hostname mismatch
#   node     sessions-0.sessions.shop.svc.cluster.local.   verified
#   As described: with a final dot, Python and OpenSSL find no matching name in the certificate, Node.js does.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >names.cnf <<'CNF'
subjectAltName = DNS:sessions-0.sessions.shop.svc.cluster.local, DNS:*.sessions.shop.svc.cluster.local
CNF
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=ca \
  -addext keyUsage=critical,keyCertSign,cRLSign -keyout ca.key -out ca.crt 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=sessions -keyout tls.key -out tls.csr 2>/dev/null
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 1 -extfile names.cnf -out tls.crt 2>/dev/null
cat >client.js <<'JS'
const [port, servername] = process.argv.slice(2);
const options = { host: '127.0.0.1', port, servername, ca: require('fs').readFileSync('ca.crt') };
const socket = require('tls').connect(options, () => { console.log('verified'); socket.destroy(); });
socket.on('error', (error) => { console.log(error.code); });
JS
cat >check.py <<'PYTHON'
import socket
import ssl
import subprocess
import sys
import threading

NAME = "sessions-0.sessions.shop.svc.cluster.local"
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("tls.crt", "tls.key")
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]


def serve() -> None:
    while True:
        connection, _ = listener.accept()
        try:
            with context.wrap_socket(connection, server_side=True) as tls:
                tls.recv(1)
        except OSError:
            pass


def python(name: str) -> str:
    client = ssl.create_default_context(cafile="ca.crt")
    try:
        with client.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname=name):
            return "verified"
    except ssl.SSLCertVerificationError as error:
        return error.verify_message.split(",")[0].lower()


def openssl(name: str) -> str:
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-CAfile", "ca.crt", "-verify_hostname", name]
    output = subprocess.run(command, input="", capture_output=True, text=True, timeout=30).stdout
    (line,) = {line for line in output.splitlines() if line.startswith("Verif") and "ication" in line}
    return "verified" if line == "Verification: OK" else line.removeprefix("Verification error: ")


def node(name: str) -> str:
    return subprocess.run(["node", "client.js", str(port), name], capture_output=True, text=True, timeout=30).stdout.strip()


threading.Thread(target=serve, daemon=True).start()
print("Python", sys.version.split()[0], "with", ssl.OPENSSL_VERSION)
print("Node.js", subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip())
results = {}
for name in (NAME, f"{NAME}."):
    for client in (python, openssl, node):
        results[client.__name__, name] = client(name)
        print(f"{client.__name__:8} {name:45} {results[client.__name__, name]}")
dotted = [results[client, f"{NAME}."] for client in ("python", "openssl", "node")]
plain = {results[client, NAME] for client in ("python", "openssl", "node")}
if (plain, dotted[2]) != ({"verified"}, "verified") or any("mismatch" not in result for result in dotted[:2]):
    sys.exit("CHANGED: the final dot has another effect.")
print("As described: with a final dot, Python and OpenSSL find no matching name in the certificate, Node.js does.")
PYTHON
timeout 100 python3 check.py
