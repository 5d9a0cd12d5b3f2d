"""Values shared by all layouts: tasks, partitions, hosts, offset sums, integers, text, errors."""

from encoding.primitives.errors import DecodeError, EncodeError, RebalanceError
from encoding.primitives.foreign_text import has_half_pair, shell_word, shown
from encoding.primitives.identifiers import (
    NO_REBALANCE,
    RUNNING,
    UNKNOWN_OFFSET_SUM,
    UNKNOWN_VERSION,
    AssignorError,
    HostInfo,
    TaskId,
    TopicPartition,
    task_order,
)
from encoding.primitives.java_text import (
    decode_java_utf,
    decode_utf8,
    decode_utf16,
    encode_java_utf,
    encode_utf8,
    encode_utf16,
)
from encoding.primitives.mappings import (
    ByName,
    ClientTags,
    Partitions,
    PartitionsByHost,
    PartitionsByTask,
)
from encoding.primitives.offset_sums import EMPTY, FEW_TASKS, TaskOffsetSums
from encoding.primitives.varints import (
    FEW,
    Cursor,
    WireFault,
    block,
    decode_varints,
    encode_varint,
    encode_varints,
    is_block,
    unzigzag,
    zigzag,
)
from encoding.primitives.view_form import ViewForm

__all__ = [
    "EMPTY",
    "FEW",
    "FEW_TASKS",
    "NO_REBALANCE",
    "RUNNING",
    "UNKNOWN_OFFSET_SUM",
    "UNKNOWN_VERSION",
    "AssignorError",
    "ByName",
    "ClientTags",
    "Cursor",
    "DecodeError",
    "EncodeError",
    "HostInfo",
    "Partitions",
    "PartitionsByHost",
    "PartitionsByTask",
    "RebalanceError",
    "TaskId",
    "TaskOffsetSums",
    "TopicPartition",
    "ViewForm",
    "WireFault",
    "block",
    "decode_java_utf",
    "decode_utf8",
    "decode_utf16",
    "decode_varints",
    "encode_java_utf",
    "encode_utf8",
    "encode_utf16",
    "encode_varint",
    "encode_varints",
    "has_half_pair",
    "is_block",
    "shell_word",
    "shown",
    "task_order",
    "unzigzag",
    "zigzag",
]
