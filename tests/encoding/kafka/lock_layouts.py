"""Adds new layouts to the lock file: `python -m tests.encoding.kafka.lock_layouts`.

Rows of existing versions never change: they are released. Native versions can get rows under new
keys, which their older readers skip.
"""

import json
from pathlib import Path

import encoding
from encoding.kafka.compiled import array_of
from encoding.kafka.schema import KINDS as STRUCTURES_OF
from encoding.kafka.schema import STRUCTURES, rows_of
from encoding.native.schema import EARLIEST_NATIVE_VERSION, READABLE_SINCE, native_rows_of

PATH = Path(__file__).with_name("released_layouts.json")
KINDS = ("subscription", "assignment")


def layout_of(kind, version):
    """The rows of a version in wire order, name and type a line, parts of structures indented.

    Native rows begin with their key and end with their default; the first line says who can read
    the version.
    """
    if version < EARLIEST_NATIVE_VERSION:
        rows = rows_of(STRUCTURES_OF[kind], version)
        return [line for row in rows for line in _lines(row, version, "")]
    rows = native_rows_of(kind, version)
    head = f"readable since {READABLE_SINCE[version]}"
    return [head, *(f"{r.key} {r.name}: {r.type} = {_spelled(r.default)}" for r in rows)]


def _lines(row, version, indent):
    lines = [f"{indent}{row.name}: {row.type}"]
    structure = array_of(row.type)
    for part in rows_of(STRUCTURES[structure], version) if structure else ():
        lines += _lines(part, version, f"{indent}  ")
    return lines


def _spelled(default):
    return "none" if default is None or default in ((), {}) else str(default)


def is_appended(old, new, version):
    """Whether a layout is the locked one, with rows of new keys behind it (native ones only)."""
    if version < EARLIEST_NATIVE_VERSION:
        return new == old
    keys = [int(line.split()[0]) for line in new[1:]]
    return new[: len(old)] == old and keys == sorted(set(keys))


def locked():
    return json.loads(PATH.read_text(encoding="ascii")) if PATH.exists() else {}


def main():
    layouts = locked()
    for version in encoding.KNOWN_VERSIONS:
        for kind in KINDS:
            new = layout_of(kind, version)
            old = layouts.setdefault(str(version), {}).setdefault(kind, new)
            if is_appended(old, new, version):
                layouts[str(version)][kind] = new
    PATH.write_text(json.dumps(layouts, indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
