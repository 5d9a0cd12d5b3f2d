"""Time of bounces of real processes, and of `make demo` in a new clone.

`python -m benchmarks.clients.live [--fresh] [--broker kafka:3.9]`. The bounces are that of `make
demo` on the embedded broker, and one of five native members on a real broker if its jars are
available. --fresh clones the checkout into an empty folder and times `make demo` there, with every
extra, which pip may take from its cache. Exit status 1: a goal is missed.
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
    """The JSON document of a bounce, or the last line of its error output."""
    command = [COMMAND, "live", "--format", "json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.stdout:
        return json.loads(done.stdout)
    message = done.stderr.strip() or f"ended with status {done.returncode}"
    return message.splitlines()[-1]


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
    """A bounce of five native members: no member rejoins for a version alone."""
    name = f"rebalances for the version, 5 native members on {broker}"
    found = bounce("--broker", broker, "--from", "native", "--to", "next", "--members", "5")
    if isinstance(found, str):
        return [say(PART, name, f"not measured: {found}", "<= 0")]
    return [
        at_most(PART, name, found["rebalances"]["version"], 0),
        at_most(PART, "  checks that failed", failed(found), 0),
    ]


def fresh():
    """Seconds of `make demo` in a new clone of the last commit."""
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
    parser.add_argument("--fresh", action="store_true", help="also time a new clone")
    parser.add_argument("--broker", default="kafka:3.9", help="Kafka release of the real broker")
    options = parser.parse_args()
    rows = [*demo(), *on_a_real_broker(options.broker), *(fresh() if options.fresh else ())]
    return int(any(row.met is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
