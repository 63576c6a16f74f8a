"""TLS, a client certificate and a password for pymemcache."""

# The library is installed only where `make test-clients` runs this program.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedBaseClass=false, reportAttributeAccessIssue=false

import os
import ssl

from pymemcache.client.base import Client
from pymemcache.client.hash import HashClient


class SecureClient(Client):
    """A client that uses TLS and logs in. It reads the files again for each connection, so it picks up renewed ones."""

    def _connect(self) -> None:
        self.tls_context = ssl.create_default_context(cafile=os.environ["MEMCACHED_CA"])
        self.tls_context.load_cert_chain(os.environ["MEMCACHED_CERTIFICATE"], os.environ["MEMCACHED_KEY"])
        super()._connect()
        login = f"{os.environ['MEMCACHED_USER']} {os.environ['MEMCACHED_PASSWORD']}".encode()
        self.sock.sendall(b"set auth 0 0 %d\r\n%s\r\n" % (len(login), login))
        if self.sock.recv(64) != b"STORED\r\n":
            self.close()
            raise ConnectionError("memcached denied the login")


HashClient.client_class = SecureClient  # before the client is created
