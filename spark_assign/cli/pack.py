"""``spark-assign pack``: the files with which spark-submit runs these commands on a cluster."""

import importlib.util
import io
import json
import shlex
import zipfile
from collections.abc import Iterator
from pathlib import Path

import click

from assignor.cli import BadInput, Command, EnvironmentFailed, complete_path, format_option
from assignor.stores import StoreError, replace_file

PACKAGES = ("assignor", "encoding", "probing", "spark_assign", "system_tests")
ARCHIVE, SCRIPT = "packages.zip", "run.py"
# Not shipped in the wheel either.
_LEFT_OUT = frozenset({"system_tests/scenarios", "system_tests/support"})
# What the packages read besides their modules; a wheel has them, too. No other file leaves this
# machine: a checkout also holds files of its user.
_DATA = frozenset(
    {
        "assignor/adapters/admin/messages/StreamsGroupDescribeRequest.json",
        "assignor/adapters/admin/messages/StreamsGroupDescribeResponse.json",
        "probing/features/kafka_levels.toml",
        "probing/releases/experiments.toml",
        "probing/releases/releases.toml",
        "system_tests/plan/changes/changes.toml",
        "system_tests/plan/changes/streams.toml",
        "system_tests/real/checksums.txt",
    }
)
# The same files make the same archive.
_DATE = (1980, 1, 1, 0, 0, 0)
_SOURCE = '''"""Run a command of spark-assign; spark-submit starts this file."""

from spark_assign.entry import main

if __name__ == "__main__":
    main()
'''
_HELP = f"""Write what spark-submit needs: DIR/{ARCHIVE} and DIR/{SCRIPT}.

{ARCHIVE} has the Python packages of this project, for --py-files. {SCRIPT} is the program that
spark-submit starts; its arguments are those of spark-assign. The Python of driver and executors
needs the libraries of the extra `spark`, but not this project.
"""
_EXAMPLES = f"""
PROGRAM pack --out job
spark-submit --py-files job/{ARCHIVE} job/{SCRIPT} batch --help
"""


@click.command(
    "pack",
    cls=Command,
    help=_HELP,
    short_help="Write the files with which spark-submit runs these commands.",
    examples=_EXAMPLES,
    exits={3: "the directory cannot be written"},
)
@click.option(
    "--out",
    required=True,
    type=click.Path(),
    metavar="DIR",
    shell_complete=complete_path("dir"),
    help="Output directory.",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing output.")
@format_option()
def pack(*, out: str, overwrite: bool, form: str) -> None:
    """Run the subcommand."""
    archive, script = Path(out) / ARCHIVE, Path(out) / SCRIPT
    for path in (archive, script):
        if path.exists() and not overwrite:
            raise BadInput(f"{path} exists; give another --out, or --overwrite to replace it")
    try:
        count = write_packages(archive)
        replace_file(script, _SOURCE.encode())
    except OSError as error:
        raise EnvironmentFailed(f"{error.filename or out}: {error.strerror}") from None
    except StoreError as error:
        raise EnvironmentFailed(str(error)) from None
    size = archive.stat().st_size
    if form == "json":
        found = {"archive": str(archive), "script": str(script), "files": count, "bytes": size}
        click.echo(json.dumps(found))
        return
    click.echo(f"{archive} ({count} files, {size / 1e6:.1f} MB) and {script}; to use them:")
    words = ["spark-submit", "--py-files", str(archive), str(script)]
    click.echo(f"  {shlex.join(words)} batch --in PATH --out PATH")


def write_packages(archive: Path) -> int:
    """Write the packages of this project into an archive; return the number of files.

    Raises:
        BadInput: the packages run from an archive themselves.
        OSError: a package cannot be read.
        StoreError: the archive cannot be written.
    """
    count, data = 0, io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as target:
        for name, path in _files():
            entry = zipfile.ZipInfo(name, date_time=_DATE)
            entry.external_attr = 0o644 << 16
            target.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
            count += 1
    replace_file(archive, data.getvalue())
    return count


def _files() -> Iterator[tuple[str, Path]]:
    """Names in the archive, sorted, and paths: modules and known data, no links, none hidden."""
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None or not Path(spec.origin).is_file():
            raise BadInput(f"package {package} is not installed in a directory; install the wheel")
        folder = Path(spec.origin).parent
        for path in sorted(folder.rglob("*")):
            inside = path.relative_to(folder)
            name = f"{package}/{inside.as_posix()}"
            is_ours = name in _DATA or (path.suffix == ".py" and _is_module(inside))
            is_left_out = any(name.startswith(f"{left_out}/") for left_out in _LEFT_OUT)
            # Also not through a link to a folder.
            is_own = path.resolve() == folder.resolve() / inside
            if is_ours and is_own and path.is_file() and not is_left_out:
                yield name, path


def _is_module(module: Path) -> bool:
    """Return whether a path within a package is that of a module of it."""
    return all(part.isidentifier() for part in module.with_suffix("").parts)
