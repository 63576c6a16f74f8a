"""Makes pictures of Chromium small: with 256 colors, they need a third of the bytes."""

import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLORS = 256
CHANNELS = 3
"""Bytes of a pixel: Chromium writes red, green and blue."""
BITS = 3
"""Lowest bits of a channel in which colors are similar."""
INDEXED = b"\x08\x03\x00\x00\x00"
"""The end of a header: 8 bits for each pixel, its number in the palette; no interlacing."""
TRUE_COLOR = b"\x08\x02\x00\x00\x00"


class PictureError(Exception):
    """The file is not a picture as Chromium writes it."""


def shrink(path: Path) -> None:
    """Write a PNG file of Chromium again with a palette."""
    path.write_bytes(with_palette(path.read_bytes()))


def with_palette(content: bytes) -> bytes:
    """A PNG file with the most frequent of its colors. Other pixels get the most similar one."""
    chunks = list(_chunks(content))
    header = dict(chunks)[b"IHDR"]
    if header[8:] != TRUE_COLOR:
        raise PictureError(f"unexpected format {header[8:].hex()}")
    width, height = struct.unpack(">II", header[:8])
    rows = list(_rows(zlib.decompress(b"".join(data for name, data in chunks if name == b"IDAT")), width, height))
    pixels = [list(zip(*(row[channel::CHANNELS] for channel in range(CHANNELS)), strict=True)) for row in rows]
    palette = colors(Counter(pixel for row in pixels for pixel in row))
    numbers = {pixel: nearest(pixel, palette) for pixel in {pixel for row in pixels for pixel in row}}
    lines = b"".join(b"\0" + bytes(map(numbers.__getitem__, row)) for row in pixels)
    entries = b"".join(map(bytes, palette))
    return SIGNATURE + b"".join(
        (
            _chunk(b"IHDR", header[:8] + INDEXED),
            _chunk(b"PLTE", entries),
            _chunk(b"IDAT", zlib.compress(lines, 9)),
            _chunk(b"IEND", b""),
        )
    )


def colors(counts: Counter[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The palette: of similar colors, the most frequent one."""
    groups: Counter[tuple[int, ...]] = Counter()
    members: dict[tuple[int, ...], tuple[int, ...]] = {}
    for color, count in counts.most_common():
        group = tuple(channel >> BITS for channel in color)
        groups[group] += count
        members.setdefault(group, color)
    return [members[group] for group, _ in groups.most_common(COLORS)]


def nearest(color: tuple[int, ...], palette: list[tuple[int, ...]]) -> int:
    """The number of the most similar color of a palette."""
    distances = [sum((one - other) ** 2 for one, other in zip(color, each, strict=True)) for each in palette]
    return distances.index(min(distances))


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(SIGNATURE)
    while place < len(content):
        (size,) = struct.unpack(">I", content[place : place + 4])
        yield content[place + 4 : place + 8], content[place + 8 : place + 8 + size]
        place += size + 12


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _rows(data: bytes, width: int, height: int) -> Iterator[bytes]:
    """The rows of an unpacked picture without PNG's filters, which write differences to neighbors."""
    size = width * CHANNELS
    above = bytes(size)
    for start in range(0, height * (size + 1), size + 1):
        above = _row(data[start], data[start + 1 : start + 1 + size], above)
        yield above


def _row(kind: int, filtered: bytes, above: bytes) -> bytes:
    row = bytearray(filtered)
    for place, value in enumerate(filtered):
        left, corner = (row[place - CHANNELS], above[place - CHANNELS]) if place >= CHANNELS else (0, 0)
        up = above[place]
        row[place] = (value + _predicted(kind, left, up, corner)) & 0xFF
    return bytes(row)


def _predicted(kind: int, left: int, up: int, corner: int) -> int:
    """The value that a filter of PNG expects: none, left, up, their mean, or the one that Paeth's rule selects."""
    if kind < 4:
        return (0, left, up, (left + up) // 2)[kind]
    return min((left, up, corner), key=lambda each: abs(left + up - corner - each))
