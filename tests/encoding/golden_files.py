"""Golden vectors: bytes that the Kafka Streams classes of 17 releases wrote and read.

`golden/subscription.jsonl.gz` and `assignment.jsonl.gz`: one vector per line, with `hex`, the
canonical `fields` that 3.9.1 reads, `wire_sorted` (the lists ascend on the wire, so a sorting
encoder gives the same bytes) and `trailing_bytes`. `edge.jsonl.gz`: unknown, invalid, truncated and
unusual input with the outcome per release. `python -m tests.encoding.store_golden RELEASE` adds a
release.
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

# Latest version that each release knows: read from the constants inside the published jars.
LATEST = {
    "0.10.0.1": 1,
    "0.10.1.1": 2,
    "0.10.2.2": 2,
    "1.1.1": 2,
    "2.0.1": 3,
    "2.1.1": 4,
    "2.3.1": 4,
    "2.4.1": 5,
    "2.5.1": 6,
    "2.6.0": 7,
    "2.6.3": 8,
    "2.8.2": 9,
    "3.0.2": 10,
    "3.2.3": 11,
    "3.9.1": 11,
    "4.3.1": 11,
    "4.4.0": 11,
}
FOLDER = Path(__file__).parent / "golden"
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


def expected_count(kind, release, version):
    if release != "3.9.1":
        return 20
    return 40 + (version in WITH_500_TASKS[kind])
