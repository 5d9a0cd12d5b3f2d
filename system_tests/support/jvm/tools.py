"""Kafka's own tools, in this process: `python -m system_tests.support.jvm.tools RELEASE`.

Reads lines `{"tool": CLASS, "arguments": [...]}`, arguments as the shell script of the tool takes
them, and answers each with `{"status": ..., "out": ..., "err": ...}`. The JVM, whose start is slow,
is started once.
"""

import json
import sys
from typing import Any

from probing import find_release
from system_tests.live.members.process import JsonLines, ask_kernel_to_end_with_parent
from system_tests.real import implement, start_jvm
from system_tests.real.jars import tools_jars

_MOVED = find_release("4.4.0").order
_UTILS = "org.apache.kafka.common.utils"


def main() -> int:
    """Answer line by line until standard input ends."""
    lines = JsonLines()
    ask_kernel_to_end_with_parent()
    release = find_release(sys.argv[1])
    classes = start_jvm(tools_jars(release.name))
    exit_name = f"{_UTILS}.internals.Exit" if release.order >= _MOVED else f"{_UTILS}.Exit"
    system, exit_ = (classes(name) for name in ("java.lang.System", exit_name))
    statuses: list[int] = []

    def remember(status: int, _: Any) -> None:
        statuses.append(int(status))

    # The tool would end its process; here only the status is recorded.
    exit_.setExitProcedure(implement(classes(f"{exit_name}$Procedure"), execute=remember))
    for line in sys.stdin:
        streams = [classes("java.io.ByteArrayOutputStream")() for _ in range(2)]
        out, err = (classes("java.io.PrintStream")(stream, True) for stream in streams)  # noqa: FBT003 Java's own parameter
        system.setOut(out)
        system.setErr(err)
        question = json.loads(line)
        classes(question["tool"]).main(question["arguments"])
        outputs = [str(stream.toString()) for stream in streams]
        lines.answer(status=statuses.pop(), out=outputs[0], err=outputs[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
