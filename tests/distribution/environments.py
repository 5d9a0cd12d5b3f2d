"""Create virtual environments with the wheel, without extras or with one."""

import json
import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.distribution.archives import needs
from tests.distribution.checks import PROBLEM

_PIP = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet")


class NotInstalled(RuntimeError):
    """pip could not install the wheel; the message has its last lines."""


def find_python(wanted):
    """The interpreter of a version such as `3.12`, or of a path; None if there is none."""
    found = shutil.which(f"python{wanted}" if re.fullmatch(r"\d+\.\d+", wanted) else wanted)
    # A version manager may have commands of versions that are not enabled.
    if found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode:
        return None
    return found


def installed(wheel, extra, folder, *, python):
    """Create an environment with pip, as a user does; return the path of its interpreter."""
    own = _made(folder, python)
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    done = subprocess.run([own, *_PIP, wanted], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotInstalled("\n".join(done.stderr.splitlines()[-4:]))
    return own


def linked(wheel, extra, folder):
    """As `installed`, without network: the wheel's requirements are linked from this environment.

    Other packages of this environment are not visible, so undeclared requirements are missing.
    """
    own = _made(folder, sys.executable, "--without-pip")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", own]
    command += ["install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(command, capture_output=True, text=True, check=True)
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    done = subprocess.run([own, "-c", code], capture_output=True, text=True, check=True)
    site = Path(done.stdout.strip())
    for name in sorted(_closure(needs(wheel), extra)):
        _link(name, site)
    return own


def _made(folder, python, *options):
    subprocess.run([python, "-m", "venv", *options, folder], check=True, capture_output=True)
    return folder / "bin" / "python"


def _closure(needs, extra):
    """Names of all distributions that these requirements need, directly or indirectly."""
    found, todo = set(), [(needs, extra)]
    while todo:
        texts, asked = todo.pop()
        for need in map(Requirement, texts):
            holds = need.marker is None or need.marker.evaluate({"extra": asked})
            if holds and (name := canonicalize_name(need.name)) not in found:
                found.add(name)
                todo.append((distribution(name).requires or (), next(iter(need.extras), "")))
    return found


def _link(name, site):
    """Link the top-level packages, modules and metadata of a distribution."""
    files = distribution(name).files or ()
    for top in sorted({file.parts[0] for file in files if file.parts[0] not in {"..", "bin"}}):
        location = Path(distribution(name).locate_file(top)).resolve()
        if not (site / top).exists() and location.exists() and top != "__pycache__":
            (site / top).symlink_to(location)


def workplace(folder):
    """Create a folder outside the checkout with the files that the checks use."""
    folder.mkdir()
    (folder / "problem.json").write_text(json.dumps(PROBLEM) + "\n", encoding="utf-8")
    return folder
