"""Decode the subscription of a Kafka Streams member and print its fields."""

from encoding import DecodeError, FutureSubscription, decode_subscription

CAPTURED = bytes.fromhex(
    "0000000b0000000b00112233445566778899aabbccddeeff00000003683a3900000002"
    "0000000000000001fffffffffffffffeffff000000010000000200000000000001f4ffff"
    "070000000000000001000000047a6f6e65000000027a31"
)

subscription = decode_subscription(CAPTURED)
if isinstance(subscription, FutureSubscription):
    raise SystemExit(f"unknown version: {subscription.version}")
print(
    f"process {subscription.process_id} writes v{subscription.version}, reads up to "
    f"v{subscription.latest_supported_version}, serves queries at {subscription.user_endpoint}"
)
for task, offset_sum in subscription.task_offset_sums:
    print(f"  task {task}: {'running' if offset_sum == -2 else offset_sum}")  # noqa: PLR2004

try:
    decode_subscription(CAPTURED[:30])
except DecodeError as error:
    print(f"a truncated blob is refused: {error}")
