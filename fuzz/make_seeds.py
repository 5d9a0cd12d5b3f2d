"""Write `corpus/seeds.jsonl` and `corpus/groups.jsonl`: `python -m fuzz.make_seeds`.

Every run writes equal bytes. Seeds are: of the golden vectors of Kafka Streams, the smallest of
each version and the edge cases; of native values, each version with every field set, trailers
behind each Kafka version, views in every form, and JSON fields.

`python -m fuzz.make_seeds --found FOLDER` writes `corpus/found.jsonl` from inputs that a run kept
(`--keep`): the smallest ones that reach code which no seed reaches.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import UUID

import encoding
from encoding import (
    KAFKA_VERSIONS,
    Assignment,
    HostInfo,
    NativeAssignment,
    NativeSubscription,
    PartitionRange,
    Subscription,
    TaskId,
    TaskOffsetSums,
    TopicPartition,
    assignment_to_fields,
    build_view,
    encode_assignment,
    encode_delta,
    encode_reference,
    encode_subscription,
    encode_view,
    subscription_to_fields,
    view_checksum,
    view_reference,
)
from encoding.primitives.varints import encode_varint
from fuzz.corpus import Seed, read_corpus, write_seeds
from fuzz.group_row import seeds as group_rows
from fuzz.inspected_groups import group_seeds
from fuzz.led_groups import led_seeds
from fuzz.member_answers import PARTITIONS
from fuzz.store_files import store_file_seeds
from fuzz.targets import BASES, TARGETS
from probing.versions import START_VERSION

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "encoding" / "golden"
NATIVE_WRITTEN = (101, 102, 103)
_HEX_MAX = 1400  # digits of a vector
Step = tuple[str, str, int, int]
ENCODING = str(Path(encoding.__file__).parent)


def golden_seeds() -> Iterator[Seed]:
    """The smallest and a medium-sized vector of each version, and every edge case."""
    for kind in ("subscription", "assignment"):
        by_version: dict[int, list[str]] = {}
        for row in _lines(kind):
            by_version.setdefault(row["version"], []).append(row["hex"])
        for version, found in sorted(by_version.items()):
            small = sorted({h for h in found if len(h) <= _HEX_MAX}, key=_short_first)
            for place, text in enumerate(dict.fromkeys((small[0], small[len(small) // 2]))):
                yield Seed(f"{kind}/kafka", f"golden v{version} {place}", bytes.fromhex(text))
    for row in _lines("edge"):
        if row["op"] == "decode" and len(row["hex"]) <= _HEX_MAX // 2:
            name = f"{row['id']} {row['case']}"
            yield Seed(f"{row['kind']}/kafka", name, bytes.fromhex(row["hex"]))


def _short_first(text: str) -> tuple[int, str]:
    return len(text), text


def _lines(name: str) -> list[dict[str, Any]]:
    with gzip.open(GOLDEN / f"{name}.jsonl.gz", "rt", encoding="ascii") as file:
        return [json.loads(line) for line in file]


SUMS = TaskOffsetSums.from_mapping(
    {TaskId(0, 0): -2, TaskId(0, 1): 0, TaskId(2, 1): -3, TaskId(2, 3): 2**40, TaskId(9, 9): 5}
)
NAMED_SUMS = TaskOffsetSums.from_mapping(
    {TaskId(0, 0): -2, TaskId(1, 1): 7, TaskId(1, 1, "named"): -(2**63)}
)
MANY_SUMS = TaskOffsetSums.from_mapping(
    {TaskId(sub, part): (-2, 3, 2**60)[part % 3] for sub in (0, 1) for part in range(50)}
)
MEMBER = NativeSubscription(
    instance_id="instance-1",
    threads=4,
    rack="rack-a",
    sizes=(4, 4, 4),
    fingerprint=b"8 bytes!",
    subtopologies=(0, 2),
    end_offset_sums=SUMS.running(),
    owned_partitions=(PartitionRange("in", 0, 3), PartitionRange("other", 5, 6)),
    owned_generation=12,
    nonce=-7,
    feature_ranges={"task": (1, 3)},
    adopted_levels={"task": 2},
    adopted_epoch=4,
    view_epoch=7,
    view_checksum=2**32 - 1,
    pinned_version=11,
)
ANSWER = NativeAssignment(
    sizes=(4, 4, 4),
    warmup_tasks=(TaskId(0, 2), TaskId(7, 7, "named")),
    partition_counts={"in": 12},
    feature_levels={"task": 2},
    feature_epoch=4,
    next_version=101,
    subscription_read=False,
    view_full=encode_view(BASES[1]),
)


def subscriptions() -> Iterator[tuple[str, Subscription]]:
    """Names and subscriptions, with every field set."""
    value = Subscription(
        version=11,
        latest_supported_version=11,
        process_id=UUID(int=2**100 + 7),
        user_endpoint="host-1:8080",
        task_offset_sums=SUMS,
        unique_field=-3,
        error_code=4,
        client_tags={"cluster": "K8s", "zone": "a\xe4"},
    )
    for version in KAFKA_VERSIONS:
        supported = version if version > 2 else -1  # noqa: PLR2004 they do not carry it
        low = replace(value, version=version, latest_supported_version=supported)
        yield f"v{version}", low
        yield f"v{version} with a trailer", replace(low, native=MEMBER)
    yield "v11 with names", replace(value, task_offset_sums=NAMED_SUMS)
    for version in NATIVE_WRITTEN:
        body = replace(value, version=version, latest_supported_version=version, native=MEMBER)
        yield f"v{version}", body
        yield f"v{version} with names", replace(body, task_offset_sums=NAMED_SUMS)
        sized = replace(MEMBER, sizes=(50, 50))
        yield f"v{version} with many", replace(body, task_offset_sums=MANY_SUMS, native=sized)
    later = replace(MEMBER, version=102, latest_supported_version=102, free_disk_bytes=2**40)
    yield "v11 with a later trailer", replace(value, native=later)


def assignments() -> Iterator[tuple[str, Assignment]]:
    """Names and assignments, with every field set."""
    partitions = [TopicPartition("in", 0), TopicPartition("out-\xe4", 3)]
    value = Assignment(
        version=11,
        commonly_supported_version=11,
        active_tasks=(TaskId(0, 0), TaskId(0, 0), TaskId(2, 1)),
        standby_tasks={TaskId(0, 1): partitions, TaskId(2, 3): ()},
        partitions_by_host={HostInfo("h1", 80): partitions, HostInfo("h2", -1): ()},
        standby_partitions_by_host={HostInfo("h2", -1): partitions[:1]},
        error_code=2,
        next_rebalance_ms=600_000,
    )
    for version in KAFKA_VERSIONS:
        low = replace(value, version=version, commonly_supported_version=version)
        yield f"v{version}", low
        yield f"v{version} with a trailer", replace(low, native=ANSWER)
    named = {TaskId(1, 1, "named"): partitions}
    yield "v11 with names", replace(value, active_tasks=tuple(named), standby_tasks=named)
    many = tuple(TaskId(0, part) for part in range(0, 90, 2))
    for version in NATIVE_WRITTEN:
        body = replace(value, version=version, commonly_supported_version=version, native=ANSWER)
        body = replace(body, active_tasks=(TaskId(0, 0), TaskId(2, 1)))
        yield f"v{version}", body
        sized = replace(ANSWER, sizes=(90,), view_full=None, view_delta=b"\2")
        yield f"v{version} with many", replace(body, active_tasks=many, native=sized)
        with_reason = replace(ANSWER, followup_reason="warm-ups")
        yield f"v{version} with a reason", replace(body, native=with_reason)


def native_seeds() -> Iterator[Seed]:
    """Blobs of the values above for each reader, and their JSON fields."""
    for name, member in subscriptions():
        yield from _for_readers("subscription", name, encode_subscription(member))
        if "trailer" not in name:
            fields = json.dumps(subscription_to_fields(member)).encode()
            yield Seed("fields", f"subscription {name}", fields)
    for name, answer in assignments():
        yield from _for_readers("assignment", name, encode_assignment(answer))
        if "trailer" not in name:
            fields = json.dumps(assignment_to_fields(answer)).encode()
            yield Seed("fields", f"assignment {name}", fields)


def _for_readers(kind: str, name: str, data: bytes) -> Iterator[Seed]:
    """Seeds for the right reader: `kafka` for Kafka's layouts, `native`, `next` for later ones."""
    plain = {f"v{version}" for version in KAFKA_VERSIONS} | {"v11 with names"}
    later = name.startswith(("v102", "v103")) or "later" in name
    reader = "kafka" if name in plain else "next" if later else "native"
    yield Seed(f"{kind}/{reader}", name, data)
    if name in {"v11 with a trailer", "v101", "v103"}:
        yield Seed("explain", f"{kind} {name}", data)


def member_seeds() -> Iterator[Seed]:
    """Valid answers for members of `fuzz.member_answers`, with member and partitions."""
    tasks = (TaskId(1, 0), TaskId(0, 0), TaskId(1, 0))  # of left-0, lines-0, right-0
    pairs = (TopicPartition("left", 1), TopicPartition("right", 1))
    picked = bytes(
        [sum(1 << at for at, partition in enumerate(PARTITIONS) if partition.partition == 0)]
    )
    hosts = {HostInfo("here", 1): pairs}
    value = Assignment(
        version=11,
        commonly_supported_version=11,
        active_tasks=tasks,
        standby_tasks={TaskId(1, 1): pairs},
        partitions_by_host=hosts,
        standby_partitions_by_host=hosts,
    )
    view = build_view(
        epoch=1, sizes=(2, 2), active={HostInfo("here", 1): [0, 2]}, standby={HostInfo("h", 2): [3]}
    )
    native = NativeAssignment(
        sizes=(2, 2),
        warmup_tasks=(TaskId(1, 1),),
        partition_counts={"left": 2, "lines": 2, "right": 2},
        next_version=101,
        view_full=encode_view(view),
    )
    for options in (0, 1, 2, 4, 16, 20):
        behind = bytes([options]) + picked
        for version in KAFKA_VERSIONS[: KAFKA_VERSIONS.index(START_VERSION) + 1]:
            low = replace(value, version=version, commonly_supported_version=version)
            name = f"member {options}, v{version}"
            yield Seed("member_receive", name, encode_assignment(low) + behind)
        trailed = encode_assignment(replace(value, native=native))
        yield Seed("member_receive", f"member {options}, v11 with a trailer", trailed + behind)
        body = replace(value, version=101, commonly_supported_version=101, native=native)
        body = replace(body, active_tasks=(TaskId(0, 0), TaskId(1, 0)))
        blob = encode_assignment(body)
        yield Seed("member_receive", f"member {options}, v101", blob + behind)


def view_seeds() -> Iterator[Seed]:
    """Views in full, as deltas between all of them, as references."""
    views = [*BASES]
    hosts = [HostInfo(f"app-{n}.prod.example", 8080 + n) for n in range(3)]
    changed = {"active": {hosts[1]: [0, 4, 10]}, "standby": {hosts[2]: [1]}}
    views.append(build_view(epoch=8, sizes=(3, 2, 5, 1), **changed))
    for number, view in enumerate(views):
        yield Seed("view", f"view {number}", encode_view(view))
        yield Seed("view/sealed", f"view {number}", encode_view(view))
        yield Seed("reference", f"view {number}", encode_reference(*view_reference(view)))
        for place, old in enumerate(BASES):
            delta = encode_delta(old, view)
            yield Seed("delta", f"view {place} to {number}", bytes([place]) + delta)
            named = 1 + len(encode_varint(old.epoch)) + len(view_checksum(old).to_bytes(4))
            rest = delta[named:]
            yield Seed("delta/sealed", f"view {place} to {number}", bytes([place]) + rest)


def found_seeds(folder: Path) -> Iterator[Seed]:
    """The smallest inputs of a run that take a step which no seed and no smaller input takes.

    A step leads from one line of `encoding` to the next, in one target.
    """
    targets = tuple(TARGETS)
    seen: set[Step] = set()
    for seed in read_corpus("seeds", "findings"):
        seen |= steps_of(seed)
    for path in sorted(folder.iterdir(), key=lambda path: (path.stat().st_size, path.name)):
        data = path.read_bytes()
        if data:
            seed = Seed(targets[data[0] % len(targets)], path.name[:12], data[1:])
            steps = steps_of(seed)
            if not steps <= seen:
                seen |= steps
                yield seed


def steps_of(seed: Seed) -> set[Step]:
    """The steps that an input takes."""
    steps: set[Step] = set()

    def trace(frame: FrameType, _event: str, _argument: object) -> Callable[..., Any] | None:
        name = frame.f_code.co_filename
        if not name.startswith(ENCODING):
            return None
        last = frame.f_lineno

        def local(frame: FrameType, _event: str, _argument: object) -> Callable[..., Any]:
            nonlocal last
            steps.add((seed.target, name, last, frame.f_lineno))
            last = frame.f_lineno
            return local

        return local

    sys.settrace(trace)
    try:
        TARGETS[seed.target](seed.data)
    finally:
        sys.settrace(None)
    return steps


def main() -> None:
    """Write the files; see the module docstring."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.make_seeds")
    parser.add_argument("--found", type=Path, help="folder of inputs that a run kept")
    options = parser.parse_args()
    if options.found:
        write_seeds("found", list(found_seeds(options.found)))
    else:
        rows = [Seed("group_row", *seed) for seed in group_rows()]
        stores = [Seed("store_files", *seed) for seed in store_file_seeds()]
        blobs = [*golden_seeds(), *native_seeds(), *view_seeds(), *member_seeds(), *led_seeds()]
        write_seeds("seeds", [*blobs, *rows, *stores])
        write_seeds("groups", list(group_seeds()))


if __name__ == "__main__":
    main()
