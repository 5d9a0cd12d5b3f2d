"""A state directory, read by real Kafka Streams: `python -m ... RELEASE STATE_DIR APPLICATION`.

Prints what its classes read there: the process id, and the checkpoint of task 0_0. Then it writes
both again unchanged, so that a test can read what these classes write.
"""

import sys
from pathlib import Path

from probing import find_release
from system_tests.live.members.process import JsonLines
from system_tests.real import start_jvm
from system_tests.real.jars import streams_jars

_STATE = "org.apache.kafka.streams.processor.internals.StateDirectory"
_CHECKPOINT = "org.apache.kafka.streams.state.internals.OffsetCheckpoint"


def main() -> int:
    """Read both files, print them, write them again."""
    lines = JsonLines()
    release, state_dir, application = sys.argv[1:]
    classes = start_jvm(streams_jars(find_release(release).name))
    settings = classes("java.util.Properties")()
    for name, value in (
        ("application.id", application),
        ("bootstrap.servers", "localhost:1"),
        ("state.dir", state_dir),
    ):
        settings.put(name, value)
    config = classes("org.apache.kafka.streams.StreamsConfig")(settings)
    clock = classes("org.apache.kafka.common.utils.Time").SYSTEM
    directory = classes(_STATE)(config, clock, True, False)  # noqa: FBT003 Java's own parameters
    process_id = str(directory.initializeProcessId())
    directory.close()
    path = Path(state_dir) / application / "0_0" / ".checkpoint"
    checkpoint = classes(_CHECKPOINT)(classes("java.io.File")(str(path)))
    offsets = checkpoint.read()
    end_offsets = {str(key): int(offsets.get(key).longValue()) for key in offsets.keySet()}
    checkpoint.write(offsets)
    lines.answer(process_id=process_id, offsets=end_offsets)
    return 0


if __name__ == "__main__":
    sys.exit(main())
