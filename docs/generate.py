"""Print the generated pages, and the generated part of ARCHITECTURE.md."""

import importlib
import sys
from pathlib import Path

import click

from docs import architecture

_DOCS = Path(__file__).resolve().parent
_GENERATORS = sorted(
    path.stem for path in (_DOCS / "generators").glob("*.py") if path.stem != "__init__"
)


def pages() -> dict[Path, str]:
    """Path of each page with a generated part -> the text that it should have."""
    found = {
        _DOCS / f"{name}.md": importlib.import_module(f"docs.generators.{name}").render()
        for name in _GENERATORS
    }
    return found | {architecture.PAGE: architecture.page_with_section()}


def drifted() -> list[str]:
    """Names of pages that are missing or differ from what the tables say."""
    return [
        path.name
        for path, text in pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


@click.command()
@click.option("--check", "checks", is_flag=True, help="Write nothing; status 1 if a page drifted.")
def main(*, checks: bool) -> None:
    """Write the pages that are printed from tables."""
    if checks:
        stale = drifted()
        if stale:
            print(f"drifted: {', '.join(stale)}; run `make docs`", file=sys.stderr)
        sys.exit(bool(stale))
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
