"""The codecs of a real release: decodes bytes, and encodes the decoded value again.

`python -m system_tests.support.jvm.codec RELEASE` reads lines `{"kind": "subscription" |
"assignment", "hex": ...}` and answers each with `{"hex": ...}` or `{"error": ...}`. The
release's class decodes the bytes and encodes the value: equal bytes prove both directions.
"""

import json
import sys
from typing import Any

from probing import find_release
from system_tests.live.members.process import JsonLines, ask_kernel_to_end_with_parent
from system_tests.real import java_bytes, java_exception, start_jvm
from system_tests.real.jars import streams_jars

_PACKAGE = "org.apache.kafka.streams.processor.internals.assignment"
_CLASSES = {"subscription": "SubscriptionInfo", "assignment": "AssignmentInfo"}


def main() -> int:
    """Answer line by line until standard input ends."""
    lines = JsonLines()
    ask_kernel_to_end_with_parent()
    classes = start_jvm(streams_jars(find_release(sys.argv[1]).name))
    codecs = {kind: classes(f"{_PACKAGE}.{name}") for kind, name in _CLASSES.items()}
    buffers = classes("java.nio.ByteBuffer")
    for line in sys.stdin:
        asked = json.loads(line)
        data = buffers.wrap(java_bytes(bytes.fromhex(asked["hex"])))
        try:
            encoded = codecs[asked["kind"]].decode(data).encode()
        except java_exception() as error:
            lines.answer(error=str(error))
        else:
            lines.answer(hex=_hex(encoded))
    return 0


def _hex(buffer: Any) -> str:
    buffer.rewind()
    array = bytes(buffer.array())
    start = int(buffer.arrayOffset())
    return array[start : start + int(buffer.remaining())].hex()


if __name__ == "__main__":
    sys.exit(main())
