"""The blocks of a Markdown page. `page_session.py` runs them from top to bottom, as a reader would.

Every fenced block has a language. Blocks of kind `console` (commands after `$ `, with their
output), `sh` (commands alone) and `python` run; `text`, `json`, `properties` and `mermaid` are only
shown. By default, only the first shown line of an output is compared, without numbers. A comment
directly above a block changes this; it has marks, separated by commas:

exact            the whole output equals the shown one. A shown line `...` stands for any lines,
                 and ` ... ` within a line, or `...` at its end, for any text.
shape            as exact, after numbers and column widths are masked.
exit N           the exit status; 0 without this mark.
until            the command is repeated until its output agrees.
background       the command runs until the page ends; the shown lines must appear in this order,
                 with any lines between them (with `shape`, without numbers).
file NAME        the block is saved under this name, in the working directory of the commands.
prints           a `text` block: the whole output of the Python block before it.
slow             the block runs in `make nightly`, in a session of its own.
not run: WHY     only options and modules are checked.

A comment that stands alone acts on a background command, named by its start: `<!-- stop: COMMAND
-->` sends Ctrl-C, `<!-- kill: COMMAND -->` sends SIGKILL, and `<!-- then prints: COMMAND -->` above
a `text` block demands that these lines follow. `<!-- then: CODE -->` runs Python code after the
blocks before it. Ports 9092, 8001 and 8002 become free ports, and are themselves again in compared
output.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUN = frozenset({"console", "sh", "python"})
SHOWN = frozenset({"text", "json", "properties", "mermaid"})
_PART = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<kind>[^\n]*)\n(?P<body>.*?)^```$"
    r"|^<!-- (?P<act>stop|kill|then): (?P<what>[^\n]*) -->$",
    re.MULTILINE | re.DOTALL,
)
_NOT_RUN = "not run: "


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block of a page, or an acting comment (`kind` is its word, `body` the rest)."""

    page: str
    line: int
    kind: str
    marks: tuple[str, ...] = ()
    why_not: str = ""
    body: str = field(repr=False)

    def __str__(self):
        return f"{self.page}:{self.line}"

    def marked(self, word):
        """Return the text after a mark, or None without the mark."""
        found = [mark for mark in self.marks if mark == word or mark.startswith(f"{word} ")]
        return found[0].removeprefix(word).strip() if found else None

    @property
    def commands(self):
        """Return pairs of a command and its shown output."""
        if self.kind == "sh":
            return [(line, "") for line in joined(self.body).splitlines() if is_command(line)]
        found = []
        for line in joined(self.body, prompt="$ ").splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found:
                found[-1][1].append(line)
        return [(command, "\n".join(lines)) for command, lines in found]


def is_command(line):
    """Return whether a line of a `sh` block is a command."""
    return bool(line.strip()) and not line.startswith("#")


def joined(body, prompt=""):
    """Return the text with continued commands as one line each."""
    lines = []
    for line in body.splitlines():
        last = lines[-1] if lines else ""
        if last.endswith("\\") and last.startswith(prompt):
            lines[-1] = f"{last[:-1].rstrip()} {line.strip()}"
        else:
            lines.append(line)
    return "\n".join(lines)


def blocks(path):
    """Return all blocks and acting comments of a page, in order."""
    text = path.read_text(encoding="utf-8")
    found = []
    for part in _PART.finditer(text):
        start = part.start("body") if part["act"] is None else part.start()
        line = text[:start].count("\n") + 1
        page = path.relative_to(ROOT).as_posix()
        if part["act"] is not None:
            found.append(Block(page=page, line=line, kind=part["act"], body=part["what"]))
            continue
        mark = part["mark"] or ""
        before, _, why = mark.partition(_NOT_RUN) if _NOT_RUN in mark else (mark, "", "")
        marks = tuple(word.strip() for word in before.split(",") if word.strip())
        found.append(
            Block(
                page=page, line=line, kind=part["kind"], marks=marks, why_not=why, body=part["body"]
            )
        )
    return found


def python_blocks(found):
    """Return pairs of a Python block and the `text` block with its output, or None."""
    steps = []
    for block in found:
        if block.kind == "python" and not block.why_not and block.marked("file") is None:
            steps.append((block, None))
        elif block.marked("prints") is not None:
            assert steps, f"{block}: no Python block before it"
            assert steps[-1][1] is None, f"{block}: the output is shown twice"
            steps[-1] = (steps[-1][0], block)
    return steps


def prints(block, shown, printed):
    """Return why the output of a Python block is not as shown; None if it is."""
    if shown is None or agrees(printed, shown.body, shape=shown.marked("shape") is not None):
        return None
    return f"{block}: printed\n{printed}"


def pages():
    """Return the README and every page below docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def pattern_of(shown, *, shape=False):
    """Return a regular expression for the output that agrees with a shown output."""
    parts = []
    for line in shown.rstrip().splitlines():
        wanted = masked(line) if shape else line.rstrip()
        if wanted.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            gaps = re.split(r"\s+\.\.\.(?:\s+|$)|\.\.\.$", wanted)
            parts.append(".*".join(re.escape(gap) for gap in gaps) + r"\n")
    return re.compile("".join(parts))


def masked(line):
    """Return a line with numbers as 0 and runs of blanks as one blank."""
    return " ".join(re.sub(r"\d[\d,.]*", "0", line).split())


def agrees(printed, shown, *, shape=False):
    """Return whether the whole output agrees with the shown one."""
    lines = [masked(line) if shape else line.rstrip() for line in printed.strip("\n").splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    text = "".join(f"{line}\n" for line in lines)
    return pattern_of(shown, shape=shape).fullmatch(text) is not None
