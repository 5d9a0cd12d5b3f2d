"""Read what a member of a Kafka Streams group said: every field of a subscription."""

from encoding import DecodeError, FutureSubscription, decode_subscription

CAPTURED = bytes.fromhex(
    "0000000b0000000b00112233445566778899aabbccddeeff00000003683a3900000002"
    "0000000000000001fffffffffffffffeffff000000010000000200000000000001f4ffff"
    "070000000000000001000000047a6f6e65000000027a31"
)

said = decode_subscription(CAPTURED)
if isinstance(said, FutureSubscription):
    raise SystemExit(f"a version that we do not know: {said.version}")
print(
    f"process {said.process_id} writes v{said.version}, reads up to "
    f"v{said.latest_supported_version}, serves queries at {said.user_endpoint}"
)
for task, offset_sum in said.task_offset_sums:
    print(f"  task {task}: {'running' if offset_sum == -2 else offset_sum}")  # noqa: PLR2004

try:
    decode_subscription(CAPTURED[:30])
except DecodeError as error:
    print(f"half of it is refused: {error}")
