"""Imports aiohttp without the certificates of public authorities. Import this module before anything else that does.

aiohttp loads them into contexts that this project never uses: each of its connections has a context of its own. They
take 2 MiB and 70 ms (aiohttp 3.14, `connector.py`).
"""

import os

_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Where OpenSSL looks for certificates. Only the import sees other values: users may set them for their API server."""

_before = {name: os.environ.get(name) for name in _VARIABLES}
os.environ.update(dict.fromkeys(_VARIABLES, os.devnull))
try:
    import aiohttp  # noqa: F401  # pyright: ignore[reportUnusedImport]
finally:
    for _name, _value in _before.items():
        del os.environ[_name]
        os.environ.update({} if _value is None else {_name: _value})
