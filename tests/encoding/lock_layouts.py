"""Adds the layouts of new versions to the lock file: `python -m tests.encoding.lock_layouts`.

It never touches a version that is there already: those are released.
"""

import json
from pathlib import Path

import encoding
from encoding.layouts import layout_of

PATH = Path(encoding.__file__).parent / "released_layouts.json"
KINDS = ("subscription", "assignment")


def locked():
    return json.loads(PATH.read_text(encoding="ascii")) if PATH.exists() else {}


def main():
    layouts = locked()
    for version in encoding.KNOWN_VERSIONS:
        entry = {kind: layout_of(kind, version) for kind in KINDS}
        layouts.setdefault(str(version), entry)
    PATH.write_text(json.dumps(layouts, indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
