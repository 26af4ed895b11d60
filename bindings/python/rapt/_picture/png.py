"""Writes PNG files: only the parts of the format that a picture of weights needs."""

from __future__ import annotations

import struct
import zlib

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_INDEXED, _TRUECOLOR = 3, 2
_SAME, _AS_ABOVE = b"\x00", b"\x02"  # filters of a row


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _header(width: int, height: int, color: int) -> bytes:
    return _SIGNATURE + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0))


def packed_rows(rows) -> bytes:
    """The rows of an image, compressed. A row that repeats the one above costs almost nothing."""
    packer, parts, above = zlib.compressobj(6), [], None
    for row in rows:
        parts.append(packer.compress(_AS_ABOVE + bytes(len(row)) if row == above else _SAME + bytes(row)))
        above = row
    return b"".join(parts) + packer.flush()


def indexed(width: int, height: int, packed: bytes, palette: list[tuple[int, int, int]], clear: int | None) -> bytes:
    """An image of one byte per pixel, an index of the palette; the colour `clear` is transparent."""
    parts = [_header(width, height, _INDEXED), _chunk(b"PLTE", b"".join(bytes(color) for color in palette))]
    if clear is not None:
        parts.append(_chunk(b"tRNS", b"\xff" * clear + b"\x00"))
    return b"".join(parts) + _chunk(b"IDAT", packed) + _chunk(b"IEND", b"")


def truecolor(width: int, height: int, rows, per_inch: float, texts: dict[str, str]) -> bytes:
    """An image of three bytes per pixel, with its resolution and a text description."""
    per_metre = round(per_inch / 0.0254)
    parts = [_header(width, height, _TRUECOLOR), _chunk(b"pHYs", struct.pack(">IIB", per_metre, per_metre, 1))]
    for keyword, text in texts.items():
        parts.append(_chunk(b"iTXt", keyword.encode("latin-1") + b"\0\0\0\0\0" + text.encode("utf-8")))
    return b"".join(parts) + _chunk(b"IDAT", packed_rows(rows)) + _chunk(b"IEND", b"")
