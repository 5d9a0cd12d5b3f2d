"""Store what the classes of a release write: `python -m tests.encoding.store_golden RELEASE`.

The newest version is the constant of its class. The contents are those of the vectors of 3.9.1, 20
of 40 for each version, drawn by the release's name: its constructors build them, its getters read
the bytes back. A version that 3.9.1 does not know has those of its newest one, with values for what
the version adds. Then the release is added to the outcomes of `edge.jsonl.gz`; where it differs
from the release stored last, it gets its own row.

With `--patch` before it, only the proof is stored that its classes do what those of the stored
release before or after it do: the digest of both, of all vectors of 3.9.1 and of all edges.
"""

import gzip
import hashlib
import json
import random
import sys

from encoding.kafka.schema import ASSIGNMENT, SUBSCRIPTION
from probing import ReleaseError, find_release
from system_tests.errors import EnvironmentFailureError
from system_tests.real import streams_jars
from system_tests.support.jvm import RealCodec
from tests.encoding import golden_files
from tests.encoding.golden_files import (
    LATEST,
    PATCHES,
    REFERENCE,
    expected_count,
    is_plain,
    lines,
    plain_rows,
    vectors,
)

_SECOND = {"subscription": "latest_supported", "assignment": "commonly_supported"}
_FIELDS = {"subscription": SUBSCRIPTION, "assignment": ASSIGNMENT}
# Type of a field -> how many bits its values have here.
_BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


def main(arguments):
    """Store a release, or a patch, and end with a sentence if its classes cannot be asked."""
    release = arguments[-1]
    try:
        find_release(release)
        streams_jars(release)
        (patch if arguments[0] == "--patch" else store)(release)
    except (ReleaseError, EnvironmentFailureError) as error:  # unknown, no jars, no Java
        raise SystemExit(f"store_golden: {error}") from None


def store(release):
    with RealCodec(release) as codec:
        LATEST[release] = codec.latest_version()
        _write_json("releases", LATEST)
        for kind in _SECOND:
            kept = [line for line in lines(kind) if line["release"] != release]
            _write(kind, [*kept, *vectors_of(codec, kind, release)])
        _write("edge", [_edge(codec, line, release) for line in lines("edge")])


def patch(release):
    found = {**PATCHES, release: proof(release)}
    _write_json("patches", dict(sorted(found.items(), key=lambda row: find_release(row[0]).order)))


def proof(release):
    """What `patches.json` has of a release.

    Raises:
        SystemExit: the classes do not do the same; then its own vectors are stored.
    """
    own, order = _digest(release), find_release(release).order
    before = [name for name in LATEST if find_release(name).order < order]
    after = [name for name in LATEST if find_release(name).order > order]
    for other in (*before[-1:], *after[:1]):
        if _digest(other) == own:
            return {"same_as": other, **own}
    raise SystemExit(
        f"{release} is neither the same as {before[-1]} nor as the stored release after it; store"
        f" what it writes with python -m tests.encoding.store_golden {release}"
    )


def _digest(release):
    written, edges = [], []
    with RealCodec(release) as codec:
        for row in plain_rows():
            kind, version, fields = row["kind"], row["version"], row["fields"]
            data = codec.construct(kind, version, row["latest_supported"], fields)
            assert codec.read(kind, data) == fields, row["id"]
            written.append(data.hex())
        edges += [found for line in lines("edge") if (found := _outcome(codec, line)) is not None]
    digest = hashlib.sha256(json.dumps([written, edges], sort_keys=True).encode("ascii"))
    return {"vectors": len(written), "edges": len(edges), "sha256": digest.hexdigest()}


def vectors_of(codec, kind, release):
    """Yield what a release writes in each version that it knows."""
    for version in range(1, LATEST[release] + 1):
        count = expected_count(kind, release, version)
        rng = random.Random(f"{release} {kind} {version}")  # noqa: S311 a choice, no secret
        chosen = rng.sample(_contents(kind, version, rng), count)
        for number, row in enumerate(sorted(chosen, key=lambda row: row["id"])):
            yield _vector(codec, row, release, number)


def _contents(kind, version, rng):
    known = min(version, LATEST[REFERENCE])
    rows = [row for row in vectors(kind)[REFERENCE, known] if is_plain(row)]
    if version == known:
        return rows
    added = [field for field in _FIELDS[kind] if known < field.since <= version]
    return [
        {
            **row,
            "version": version,
            "latest_supported": version,
            "hex": "",
            "fields": {
                **row["fields"],
                "version": version,
                _SECOND[kind]: version,
                **{field.name: _value(field, rng) for field in added},
            },
        }
        for row in rows
    ]


def _value(field, rng):
    if field.type not in _BITS:
        raise SystemExit(f"say in _value of {__file__} what a {field.type} of {field.name} may be")
    return rng.getrandbits(_BITS[field.type])


def _vector(codec, row, release, number):
    kind, version = row["kind"], row["version"]
    data = codec.construct(kind, version, row["latest_supported"], row["fields"])
    fields = codec.read(kind, data)
    if fields != row["fields"]:
        raise SystemExit(f"{row['id']}: {release} reads other values than {REFERENCE}: {fields}")
    same = data.hex() == row["hex"]
    return {
        "id": f"{kind[0]}-{release}-v{version}-{number:02}",
        **{name: row[name] for name in ("kind", "version", "latest_supported")},
        "release": release,
        "hex": data.hex(),
        "fields": fields,
        # Equal bytes are sorted where those of 3.9.1 are, which were checked without this codec.
        "wire_sorted": same and row["wire_sorted"],
        "vs_3_9_1": "identical" if same else "reordered",
    }


def _edge(codec, line, release):
    before = [r for r in LATEST if r != release][-1]
    results = [
        {**row, "releases": [name for name in row["releases"] if name != release]}
        for row in line["results"]
    ]
    found = _outcome(codec, line)
    last = next((row for row in results if before in row["releases"]), None)
    if last is None or found is None:
        return {**line, "results": results}
    if all(last.get(key) == found.get(key) for key in ("error", "fields", "prefix_lengths")):
        last["releases"].append(release)
    else:
        results.append({"releases": [release], **found})
    return {**line, "results": results}


def _outcome(codec, line):
    """The class's outcome for one line; None where the line has no input that can be asked."""
    kind = line["kind"]
    if line["op"] in ("decode", "probing_response"):
        found = _tried(lambda: {"fields": codec.read(kind, bytes.fromhex(line["hex"]))})
        return {"error": found["error"].partition(" <- ")[0]} if "error" in found else found
    if line["op"] == "truncate":
        return {"prefix_lengths": _prefixes(codec, kind, bytes.fromhex(line["hex"]))}
    return None


def _prefixes(codec, kind, data):
    """The error of each proper prefix, as ranges of lengths (first, last, error)."""
    ranges = []
    for length in range(len(data)):
        error = _tried(lambda size=length: {"fields": codec.read(kind, data[:size])}).get("error")
        if ranges and ranges[-1][2] == error:
            ranges[-1][1] = length
        else:
            ranges.append([length, length, error])
    return ranges


def _tried(ask):
    try:
        return ask()
    except ValueError as error:
        return {"error": str(error)}


def _write_json(name, rows):
    text = json.dumps(rows, indent=1) + "\n"
    (golden_files.FOLDER / f"{name}.json").write_text(text, encoding="ascii")


def _write(name, rows):
    text = "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows)
    path = golden_files.FOLDER / f"{name}.jsonl.gz"
    path.write_bytes(gzip.compress(text.encode("ascii"), mtime=0))


if __name__ == "__main__":
    main(sys.argv[1:])
