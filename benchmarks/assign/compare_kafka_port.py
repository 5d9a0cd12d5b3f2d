"""Compare `kafka_high_availability` with stored answers of Kafka's assignor: equal / total.

    python benchmarks/assign/compare_kafka_port.py FOLDER [FOLDER ...]

A folder holds `problems.jsonl` and `java_results.jsonl` (or `.gz` of them), one problem and one
answer a line. Equal means task by task: actives, standbys with warm-ups, and whether a follow-up
rebalance is asked for. Exit status 1 when one differs.
"""

import gzip
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assignor.placement.jvm import kafka_high_availability
from assignor.problems.files import read_problem, result_of


def json_lines(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, gzip or not."""
    plain, packed = folder / name, folder / f"{name}.gz"
    if packed.exists():
        text = gzip.decompress(packed.read_bytes()).decode()
    else:
        text = plain.read_text(encoding="utf-8")
    for line in text.splitlines():
        yield json.loads(line)


def placement(answer: dict[str, Any]) -> dict[str, tuple[list[str], list[str]]]:
    """Client -> (actives, copies), sorted; clients without anything are left out."""
    clients = {}
    for client, given in answer["clients"].items():
        copies = [*given.get("standby", ()), *given.get("warmup", ())]
        if given.get("active") or copies:
            clients[client] = (sorted(given.get("active", ())), sorted(copies))
    return clients


def difference(ours: dict[str, Any], kafkas: dict[str, Any]) -> str:
    """The difference in a few words; empty if there is none."""
    own_placement, other = placement(ours), placement(kafkas)
    apart = [
        client
        for client in sorted(own_placement.keys() | other.keys())
        if own_placement.get(client) != other.get(client)
    ]
    if apart:
        return f"{len(apart)} of {len(ours['clients'])} clients, first {apart[0]}"
    if bool(ours["probing"]) != bool(kafkas["probing"]):
        return f"follow-up {ours['probing']}, Kafka's {kafkas['probing']}"
    return ""


def main(folders: list[str]) -> int:
    """Compare all problems of the folders; print those that differ, then the counts."""
    equal = total = 0
    for folder in map(Path, folders):
        kafkas = {
            answer["name"]: answer
            for answer in json_lines(folder, "java_results.jsonl")
            if answer["assignor"] == "high_availability" and "clients" in answer
        }
        same = 0
        for data in json_lines(folder, "problems.jsonl"):
            problem = read_problem(data)
            start = time.perf_counter()
            assignment = kafka_high_availability(problem.state)
            millis = 1_000 * (time.perf_counter() - start)
            ours = result_of(problem, assignment, assignor="kafka_high_availability", millis=millis)
            what = difference(ours, kafkas[problem.name])
            same += not what
            if what:
                print(f"{problem.name}: {what}")
            if millis > 1_000:
                print(f"{problem.name}: {millis:,.0f} ms")
        print(f"{folder.name}: {same} / {len(kafkas)} equal")
        equal, total = equal + same, total + len(kafkas)
    print(f"all: {equal} / {total} equal")
    return 0 if equal == total else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
