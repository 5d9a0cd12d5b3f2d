"""Build wheel and sdist, and list their contents."""

import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("encoding", "probing", "assignor", "spark_assign", "system_tests")


@dataclass(frozen=True, slots=True, kw_only=True)
class Archives:
    """One wheel and one sdist."""

    wheel: Path
    sdist: Path


def build(source, target, *kinds):
    """Build archives from a folder with the tools of this environment; without network."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", target, *kinds, source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{source} cannot be built:\n{done.stdout}{done.stderr}")


def archives_in(folder):
    """The only wheel and the only sdist of a folder."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Archives(wheel=wheel, sdist=sdist)


def wheel_files(path):
    """Name -> bytes of all files, metadata too."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def metadata(path):
    """Metadata of the wheel."""
    files = wheel_files(path)
    (name,) = [name for name in files if name.endswith(".dist-info/METADATA")]
    return message_from_bytes(files[name])


def needs(path):
    """Requirements of the wheel, including extras, as texts."""
    return metadata(path).get_all("Requires-Dist")


def sdist_files(path):
    """Names of all files, without their common folder."""
    with tarfile.open(path) as archive:
        return {entry.name.partition("/")[2] for entry in archive.getmembers() if entry.isfile()}


def unpack(path, target):
    """Unpack an sdist; return the folder with its pyproject.toml."""
    with tarfile.open(path) as archive:
        archive.extractall(target, filter="data")
    (folder,) = target.iterdir()
    return folder
