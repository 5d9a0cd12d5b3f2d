"""Find the problem sets, and the stored figures of Kafka's assignors."""

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
    """Java's figures by assignor and problem, from the folder or from notes in the problems."""
    if folder is not None:
        return json.loads((folder / "java_metrics.json").read_text(encoding="utf-8"))["problems"]
    notes = {d["name"]: d["note"]["kafka"] for d in problems if "note" in d}
    return {"high_availability": notes, "sticky": {}}


def beside():
    """The folder `*/problems` beside the checkout, if there is one, else None."""
    found = sorted(path.parent for path in ROOT.parent.glob("*/problems/open") if path.is_dir())
    return found[0] if found else None
