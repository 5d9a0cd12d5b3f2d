"""Read and write the corpus: seeds as lines of text, so that reviews show their changes.

`python -m fuzz.make_seeds` writes `seeds.jsonl` (from golden vectors and values) and `groups.jsonl`
(inspected groups). `found.jsonl` holds inputs of long runs that reach branches which no seed
reaches; `findings.jsonl` holds inputs that once broke a promise. A line is `{"target", "name",
"hex"}`.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["Seed", "read_corpus", "unpack_corpus", "write_seeds"]

FOLDER = Path(__file__).resolve().parent


class Seed(NamedTuple):
    """One input of a target."""

    target: str
    name: str
    data: bytes


def read_corpus(*names: str) -> list[Seed]:
    """Seeds of these files of the corpus; of all files if none is named."""
    paths = [FOLDER / f"{name}.jsonl" for name in names] or sorted(FOLDER.glob("*.jsonl"))
    lines = [line for path in paths for line in path.read_text(encoding="ascii").splitlines()]
    rows = [json.loads(line) for line in lines]
    return [Seed(row["target"], row["name"], bytes.fromhex(row["hex"])) for row in rows]


def write_seeds(name: str, seeds: list[Seed]) -> None:
    """Write one file of the corpus, sorted, each input once."""
    rows = sorted({(seed.target, seed.data): seed for seed in seeds}.values())
    lines = [
        json.dumps({"target": row.target, "name": row.name, "hex": row.data.hex()}) for row in rows
    ]
    text = "".join(f"{line}\n" for line in lines)
    (FOLDER / f"{name}.jsonl").write_text(text, encoding="ascii")


def unpack_corpus(folder: Path, positions: Sequence[int]) -> None:
    """Write one file per seed of these targets for libFuzzer: position of the target, its bytes."""
    from fuzz.targets import TARGETS  # noqa: PLC0415 the corpus can be listed without encoding

    folder.mkdir(parents=True, exist_ok=True)
    position = {target: index for index, target in enumerate(TARGETS)}
    for number, seed in enumerate(read_corpus()):
        if position[seed.target] in positions:
            (folder / f"{number:04}").write_bytes(bytes([position[seed.target]]) + seed.data)
