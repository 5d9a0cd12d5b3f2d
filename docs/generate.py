"""Write what is generated from tables, declarations, help texts and stored results.

Each module of docs/generators writes the page of docs/ with its name, or the file of its `PATH`.
"""

import importlib
import sys
from pathlib import Path

import click

_DOCS = Path(__file__).resolve().parent
_ROOT = _DOCS.parent
_GENERATORS = sorted(
    path.stem for path in (_DOCS / "generators").glob("*.py") if path.stem != "__init__"
)


def pages() -> dict[Path, str]:
    """Return the text of each generated page or module, by its path."""
    modules = [importlib.import_module(f"docs.generators.{name}") for name in _GENERATORS]
    return {
        _ROOT / getattr(each, "PATH", f"docs/{name}.md"): each.render()
        for name, each in zip(_GENERATORS, modules, strict=True)
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
