import pytest

from memcached_process.addresses import Address, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0", None),
        (":8081", Address(None, 8081)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("[::1]:65535", Address("::1", 65535)),
    ],
)
def test_addresses(text: str, address: Address | None):
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "8081", ":", ":x", ":65536", ":-1", "a:٣"])
def test_invalid_addresses(text: str):
    with pytest.raises(ValueError, match=": invalid bind address; use HOST:PORT, :PORT, or 0 to disable the server"):
        parse_address(text)
