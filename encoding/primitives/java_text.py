"""The three text encodings of Kafka Streams, compatible with Java in every case.

Python's codecs differ from Java's in cases that real bytes contain: a NUL or a character above
U+FFFF in a host name, half a surrogate pair, malformed UTF-8. Every function is linear.
"""

import re
from array import array

# A surrogate written as three bytes is one malformed part for Java, and three for Python.
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT = "�".encode()
_SUPPLEMENTARY = re.compile("[\U00010000-\U0010ffff]")
_MODIFIED = re.compile(rb"(?:[\x00-\x7f]|[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2})*+")
_LEAD_OF_TWO, _LEAD_OF_THREE = 0xC0, 0xE0


def encode_utf8(text: str) -> bytes:
    """UTF-8 as Java's ``getBytes`` writes it: half a surrogate pair becomes ``?``."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Two adjacent halves are one character for Java.
        return decode_utf16(encode_utf16(text)).encode("utf-8", "replace")


def decode_utf8(data: bytes) -> str:
    """UTF-8 as Java's ``new String`` reads it: U+FFFD per malformed part, never an error."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(_REPLACEMENT, data).decode("utf-8", "replace")


def encode_utf16(text: str) -> bytes:
    """Two bytes per UTF-16 unit; unpaired surrogates stay unchanged."""
    return text.encode("utf-16-be", "surrogatepass")


def decode_utf16(data: bytes) -> str:
    """Text of an even number of bytes; unpaired surrogates stay unchanged."""
    return data.decode("utf-16-be", "surrogatepass")


def encode_java_utf(text: str) -> bytes:
    """Modified UTF-8 as Java's ``writeUTF`` writes it, without the length in front."""
    if text.isascii() and "\0" not in text:
        return text.encode("ascii")
    halves = _SUPPLEMENTARY.sub(_split, text)
    return halves.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")


def decode_java_utf(data: bytes) -> str | None:
    """Text of modified UTF-8, or ``None`` if Java's ``readUTF`` refuses the bytes.

    As in Java, a plain NUL byte, overlong forms and unpaired surrogates are accepted.
    """
    if data.isascii():
        return data.decode("ascii")
    if _MODIFIED.fullmatch(data) is None:
        return None
    units = array("H")
    position = 0
    while position < len(data):
        lead = data[position]
        if lead < _LEAD_OF_TWO:
            units.append(lead)
            position += 1
        elif lead < _LEAD_OF_THREE:
            units.append((lead & 0x1F) << 6 | data[position + 1] & 0x3F)
            position += 2
        else:
            middle = (data[position + 1] & 0x3F) << 6
            units.append((lead & 0x0F) << 12 | middle | data[position + 2] & 0x3F)
            position += 3
    if _NATIVE_IS_LITTLE:
        units.byteswap()
    return decode_utf16(units.tobytes())


def _split(match: re.Match[str]) -> str:
    offset = ord(match[0]) - 0x10000
    return chr(0xD800 + (offset >> 10)) + chr(0xDC00 + (offset & 0x3FF))


_NATIVE_IS_LITTLE = array("H", [1]).tobytes() == b"\x01\x00"
