"""Building wheel and sdist, and what lies in them."""

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
    """Build from a folder, by the tools of this environment; nothing is fetched."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", target, *kinds, source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{source} cannot be built:\n{done.stdout}{done.stderr}")


def archives_in(folder):
    """The wheel and the sdist in a folder that holds one of each."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Archives(wheel=wheel, sdist=sdist)


def wheel_files(path):
    """Name -> bytes of all files, metadata too."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def metadata(path):
    """The wheel's own description."""
    files = wheel_files(path)
    (name,) = [name for name in files if name.endswith(".dist-info/METADATA")]
    return message_from_bytes(files[name])


def needs(path):
    """What the wheel requires, extras included, as texts."""
    return metadata(path).get_all("Requires-Dist")


def sdist_files(path):
    """Names of all files, without the folder that they are in."""
    with tarfile.open(path) as archive:
        return {one.name.partition("/")[2] for one in archive.getmembers() if one.isfile()}


def unpack(path, target):
    """Unpack an sdist; the folder that holds its pyproject.toml."""
    with tarfile.open(path) as archive:
        archive.extractall(target, filter="data")
    (folder,) = target.iterdir()
    return folder


def project_files():
    """All files that git keeps or would add: what is ignored is nobody's."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}
