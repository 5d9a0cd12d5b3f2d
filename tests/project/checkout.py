"""The files of the checkout, listed when the module is imported: no test starts git for them."""

import os
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
_LISTED: Final = subprocess.run(
    ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
    cwd=ROOT,
    capture_output=True,
    check=True,
).stdout
# Tracked and new files, without those that are deleted and those that git ignores.
NAMES: Final = tuple(
    name for name in sorted(set(os.fsdecode(_LISTED).split("\0"))) if (ROOT / name).is_file()
)


def files(*suffixes: str) -> list[Path]:
    """Return the files whose names end so."""
    return [ROOT / name for name in NAMES if name.endswith(suffixes)]
