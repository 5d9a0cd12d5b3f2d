"""Blocks of the README and how to run them.

Above a block may stand `<!-- exact -->` (output must be equal), `<!-- shape -->` (equal once
numbers are masked) or `<!-- slow -->` (full suite only, exit status checked). Without a mark a
console block is run and its exit status checked; a python block is always executed.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(
    r"(?:<!-- (?P<mark>\w+)[^>]*-->\n)?^```(?P<kind>console|python)\n(?P<body>.*?)^```",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One fenced block; `commands` are pairs of a command line and the output shown for it."""

    line: int
    kind: str
    mark: str
    body: str

    @property
    def commands(self):
        found = []
        for text in self.body.splitlines():
            if text.startswith("$ "):
                found.append((text[2:], []))
            elif found:
                found[-1][1].append(text)
        return [(command, "\n".join(lines)) for command, lines in found]


def blocks(path=ROOT / "README.md"):
    text = path.read_text(encoding="utf-8")
    return [
        Block(text[: m.start()].count("\n") + 1, m["kind"], m["mark"] or "", m["body"])
        for m in _BLOCK.finditer(text)
    ]
