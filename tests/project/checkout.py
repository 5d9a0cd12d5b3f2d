"""The files of the checkout, listed when the module is imported: no test starts git for them."""

import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
# Tracked and new files, without those that are deleted and those that git ignores.
NAMES: Final = tuple(
    name
    for name in sorted(
        set(
            subprocess.run(
                ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
            ).stdout.splitlines()
        )
    )
    if (ROOT / name).is_file()
)


def files(*suffixes: str) -> list[Path]:
    """Return the files whose names end so."""
    return [ROOT / name for name in NAMES if name.endswith(suffixes)]
