"""The certificates of public authorities are not loaded before a connection needs them."""

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from memcached_operator.certificates.pki import issue
from support import programs

PROGRAM: Final = """
import gc, importlib, os, ssl, sys
importlib.import_module(sys.argv[1])
loaded = [each for each in gc.get_objects() if isinstance(each, ssl.SSLContext)]
print(sum(each.cert_store_stats()["x509"] for each in loaded), len(loaded) > 0)
print(ssl.create_default_context().cert_store_stats()["x509"], os.environ.get("SSL_CERT_DIR"))
"""


@pytest.mark.parametrize("package", ["memcached_operator", "memcached_webhooks"])
def test_no_certificates_are_loaded_on_import(package: str, tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.write_bytes(issue(["example.com"], timedelta(days=1), datetime.now(UTC)).ca)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SSL_CERT_FILE": str(file)}
    environment.pop("SSL_CERT_DIR", None)
    command = [sys.executable, "-c", PROGRAM, f"{package}.__main__"]
    in_memory, later = programs.run(command, env=environment).stdout.splitlines()
    assert in_memory == "0 True"
    assert later.split()[0] != "0", "a user's file of certificates is not ignored"
    assert later.split()[1] == "None"
