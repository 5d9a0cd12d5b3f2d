"""Bounces of real processes, and the first two commands of a newcomer.

`python -m benchmarks.clients.live [--fresh] [--broker kafka:3.9]`. The bounce is that of `make
demo`, on the embedded broker, and one of five members of ours on a real broker where its jars can
be had. --fresh clones the checkout into an empty folder and times `make demo` there: pip installs
every extra, from its cache if it has one. Exit status 1: a goal is missed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.rows import at_most, say

PART = "live"
ROOT = Path(__file__).resolve().parents[2]
COMMAND = Path(sys.executable).with_name("rolling-bounce")
BOUNCE_GOAL_S, FRESH_GOAL_S = 20.0, 90.0


def bounce(*arguments):
    """The document of a bounce; the last sentence of one that has none."""
    command = [COMMAND, "live", "--format", "json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.stdout:
        return json.loads(done.stdout)
    said = done.stderr.strip() or f"ended with status {done.returncode}"
    return said.splitlines()[-1]


def demo():
    """The bounce of `make demo`."""
    found = bounce("--from", "3.1", "--to", "native", "--members", "3", "--seed", "7")
    if isinstance(found, str):
        return [say(PART, "bounce of 3 members", found, met=False)]
    return [
        at_most(PART, "bounce of 3 members", found["bounce_seconds"], BOUNCE_GOAL_S, "s"),
        at_most(PART, "  checks that failed", failed(found), 0),
    ]


def failed(found):
    return sum(not check["ok"] for check in found["checks"]) + (not found["ok"])


def on_a_real_broker(broker):
    """Five members of ours: nobody rejoins only for a version."""
    name = f"rebalances for the version, 5 of ours on {broker}"
    found = bounce("--broker", broker, "--from", "native", "--to", "next", "--members", "5")
    if isinstance(found, str):
        return [say(PART, name, f"not measured: {found}", "<= 0")]
    return [
        at_most(PART, name, found["rebalances"]["version"], 0),
        at_most(PART, "  checks that failed", failed(found), 0),
    ]


def fresh():
    """Seconds of `make demo` as the first command in a clone of the last commit."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder, "clone")
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        began = time.monotonic()
        command = ["make", "demo", f"PYTHON={sys.executable}"]
        done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
        took = time.monotonic() - began
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1]
        return [say(PART, "make demo in a fresh clone", last, met=False)]
    return [at_most(PART, "make demo in a fresh clone", took, FRESH_GOAL_S, "s")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fresh", action="store_true", help="time a fresh clone too")
    parser.add_argument("--broker", default="kafka:3.9", help="the real one")
    given = parser.parse_args()
    rows = [*demo(), *on_a_real_broker(given.broker), *(fresh() if given.fresh else ())]
    return int(any(row.met is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
