"""A rehearsal of the move to the streams protocol (KIP-1071): real JVM members, there and back."""

from system_tests.live.streams_move.run import StreamsMoveOptions, run_streams_move
from system_tests.live.streams_move.verdict import Check, MoveVerdict, Phase, verdict_of

__all__ = [
    "Check",
    "MoveVerdict",
    "Phase",
    "StreamsMoveOptions",
    "run_streams_move",
    "verdict_of",
]
