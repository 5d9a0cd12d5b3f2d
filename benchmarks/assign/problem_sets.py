"""Where the sets of problems are, and the figures of Kafka's assignors stored with them."""

import gzip
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "tests/assignor/problems/open_sample.jsonl.gz"


def lines(path):
    found = path if path.exists() else path.with_name(path.name + ".gz")
    data = found.read_bytes()
    text = gzip.decompress(data) if found.suffix == ".gz" else data
    return [json.loads(line) for line in text.splitlines()]


def stored(folder, problems):
    """Java's figures by assignor and problem, from the folder or the problems' own notes."""
    if folder is not None:
        return json.loads((folder / "java_metrics.json").read_text())["problems"]
    notes = {d["name"]: d["note"]["kafka"] for d in problems if "note" in d}
    return {"high_availability": notes, "sticky": {}}


def beside():
    """A folder `*/problems` next to the checkout that holds the sets; None without one."""
    found = sorted(path.parent for path in ROOT.parent.glob("*/problems/open") if path.is_dir())
    return found[0] if found else None
