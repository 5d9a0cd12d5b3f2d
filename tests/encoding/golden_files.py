"""Golden vectors: bytes that the Kafka Streams classes of 17 releases wrote and read.

`golden/subscription.jsonl.gz` and `assignment.jsonl.gz`: one vector per line, with `hex`, the
canonical `fields` that 3.9.1 reads, `wire_sorted` (the lists ascend on the wire, so a sorting
encoder gives the same bytes) and `trailing_bytes`. `edge.jsonl.gz`: unknown, invalid, truncated and
unusual input with the outcome per release. `python -m tests.encoding.store_golden RELEASE` adds a
release. `patches.json`: releases whose classes give the same for all of this as a stored one.
"""

import gzip
import json
from collections import defaultdict
from functools import cache
from pathlib import Path

from encoding import (
    assignment_from_fields,
    assignment_to_fields,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    subscription_from_fields,
    subscription_to_fields,
)

FOLDER = Path(__file__).parent / "golden"
# Latest version that each release knows: read from the constants inside the published jars, and
# stored by `store_golden`.
LATEST = json.loads((FOLDER / "releases.json").read_text(encoding="ascii"))
# What patch releases write and read is what the stored release does (`store_golden --patch`).
PATCHES = json.loads((FOLDER / "patches.json").read_text(encoding="ascii"))
REFERENCE = "3.9.1"
WITH_500_TASKS = {"subscription": (5, 8, 11), "assignment": (5, 11)}
EDGES = 435

DECODE = {"subscription": decode_subscription, "assignment": decode_assignment}
ENCODE = {"subscription": encode_subscription, "assignment": encode_assignment}
TO_FIELDS = {"subscription": subscription_to_fields, "assignment": assignment_to_fields}
FROM_FIELDS = {"subscription": subscription_from_fields, "assignment": assignment_from_fields}


@cache
def lines(name):
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="ascii") as file:
        return [json.loads(line) for line in file]


@cache
def vectors(kind):
    by_group = defaultdict(list)
    for line in lines(kind):
        by_group[line["release"], line["version"]].append(line)
    return by_group


def groups(versions):
    """(kind, release, version) of every expected group of vectors."""
    return [
        (kind, release, version)
        for kind in ("subscription", "assignment")
        for release, latest in LATEST.items()
        for version in versions
        if version <= latest
    ]


def plain_rows():
    """The vectors of the reference that each release is asked for, less the sizes of 500 tasks."""
    return [
        row
        for kind in ("subscription", "assignment")
        for (release, _), rows in vectors(kind).items()
        for row in rows
        if release == REFERENCE and is_plain(row)
    ]


def is_plain(row):
    """Whether the vector is small: the sizes of 500 tasks are checked with one release."""
    return len(row["hex"]) < 5000


def expected_count(kind, release, version):
    if release != REFERENCE:
        return 20
    return 40 + (version in WITH_500_TASKS[kind])
