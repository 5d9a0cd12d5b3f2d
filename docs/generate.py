"""Write the pages under docs/ that are generated from tables, help texts and stored results."""

import importlib
import sys
from pathlib import Path

import click

_DOCS = Path(__file__).resolve().parent
_GENERATORS = sorted(
    path.stem for path in (_DOCS / "generators").glob("*.py") if path.stem != "__init__"
)


def pages() -> dict[Path, str]:
    """Return the text of each generated page, by its path."""
    return {
        _DOCS / f"{name}.md": importlib.import_module(f"docs.generators.{name}").render()
        for name in _GENERATORS
    }


def drifted() -> list[str]:
    """Return the names of pages that are missing or out of date."""
    return [
        path.name
        for path, text in pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


@click.command()
@click.option(
    "--check", "checks", is_flag=True, help="Write nothing; exit with 1 if a page is out of date."
)
def main(*, checks: bool) -> None:
    """Write the generated pages."""
    if checks:
        stale = drifted()
        if stale:
            print(
                f"out of date: {', '.join(stale)}; run `python -m docs.generate`", file=sys.stderr
            )
        sys.exit(bool(stale))
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
