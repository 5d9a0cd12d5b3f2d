"""The blocks of a Markdown page, and a session that runs them as a reader would, top to bottom.

Every fenced block has a language. `console` (commands behind `$ `, with what they print), `sh`
(commands alone) and `python` blocks run; `text`, `json` and `properties` are shown only. What is
printed begins with the first line that is shown, numbers aside; the rest is as one run had it. A
comment right above a block says more, several words with commas between:

exact            all that is printed equals what is shown. A shown line `...` stands for any lines,
                 and ` ... ` within a line, or `...` at its end, for anything.
shape            the same, once numbers and the width of columns are masked.
exit N           the exit status, 0 otherwise.
until            the command is repeated until it prints that.
background       the command stays while the page lasts; the lines that are shown come, in order,
                 others between them (with `shape`, numbers aside).
file NAME        the block is saved under this name, in the directory where commands run.
slow             run with the whole suite only.
not run: WHY     options and modules are checked, nothing else.

Comments that stand alone act on commands in the background, named by how they begin:
`<!-- stop: COMMAND -->` is Ctrl-C, `<!-- kill: COMMAND -->` is SIGKILL, and `<!-- then prints:
COMMAND -->` above a `text` block says that these lines come next. `<!-- then: CODE -->` is Python
behind the blocks before it. Port 9092 becomes a free port, and is 9092 again in what is compared.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUN = frozenset({"console", "sh", "python"})
SHOWN = frozenset({"text", "json", "properties"})
_PART = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<kind>[^\n]*)\n(?P<body>.*?)^```$"
    r"|^<!-- (?P<act>stop|kill|then): (?P<what>[^\n]*) -->$",
    re.MULTILINE | re.DOTALL,
)
_NOT_RUN = "not run: "


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block of a page, or a comment that acts (`kind` is its word, `body` the rest)."""

    page: str
    line: int
    kind: str
    marks: tuple[str, ...] = ()
    why_not: str = ""
    body: str = field(repr=False)

    def __str__(self):
        return f"{self.page}:{self.line}"

    def marked(self, word):
        """What stands behind a mark, or None without it."""
        found = [mark for mark in self.marks if mark == word or mark.startswith(f"{word} ")]
        return found[0].removeprefix(word).strip() if found else None

    @property
    def commands(self):
        """Pairs of a command and the output that is shown for it."""
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
    """Whether a line of a `sh` block says something."""
    return bool(line.strip()) and not line.startswith("#")


def joined(body, prompt=""):
    """Commands that go on behind a backslash as one line each."""
    lines = []
    for line in body.splitlines():
        last = lines[-1] if lines else ""
        if last.endswith("\\") and last.startswith(prompt):
            lines[-1] = f"{last[:-1].rstrip()} {line.strip()}"
        else:
            lines.append(line)
    return "\n".join(lines)


def blocks(path):
    """All blocks of a page and the comments that act, in order."""
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


def pages():
    """The README and every page of docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def pattern_of(shown, *, shape=False):
    """A regular expression for what may be printed where this is shown."""
    parts = []
    for line in shown.rstrip().splitlines():
        said = masked(line) if shape else line.rstrip()
        if said.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            gaps = re.split(r"\s+\.\.\.(?:\s+|$)|\.\.\.$", said)
            parts.append(".*".join(re.escape(gap) for gap in gaps) + r"\n")
    return re.compile("".join(parts))


def masked(line):
    """Numbers as 0, runs of blanks as one."""
    return " ".join(re.sub(r"\d[\d,.]*", "0", line).split())


def agrees(printed, shown, *, shape=False):
    """Whether all that was printed is what is shown."""
    lines = [masked(line) if shape else line.rstrip() for line in printed.strip("\n").splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    text = "".join(f"{line}\n" for line in lines)
    return pattern_of(shown, shape=shape).fullmatch(text) is not None
