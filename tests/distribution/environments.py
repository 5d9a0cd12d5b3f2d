"""Clean virtual environments with the wheel and nothing, or one extra, beside it."""

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
    """pip could not install the wheel; its last lines say why."""


def find_python(wanted):
    """The interpreter for `3.12`, or for a path; None where there is none."""
    found = shutil.which(f"python{wanted}" if re.fullmatch(r"\d+\.\d+", wanted) else wanted)
    # A version manager leaves names of versions that are not switched on, too.
    if found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode:
        return None
    return found


def installed(wheel, extra, folder, *, python):
    """An environment made by pip, as a user makes it; the path of its interpreter."""
    own = _made(folder, python)
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    done = subprocess.run([own, *_PIP, wanted], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotInstalled("\n".join(done.stderr.splitlines()[-4:]))
    return own


def linked(wheel, extra, folder):
    """The same without a network: what the wheel requires is linked from this environment.

    Nothing else of this environment is seen there, so a requirement that nobody names is missing.
    """
    own = _made(folder, sys.executable, "--without-pip")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", own]
    command += ["install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(command, capture_output=True, text=True, check=True)
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    said = subprocess.run([own, "-c", code], capture_output=True, text=True, check=True)
    site = Path(said.stdout.strip())
    for name in sorted(_closure(needs(wheel), extra)):
        _link(name, site)
    return own


def _made(folder, python, *options):
    subprocess.run([python, "-m", "venv", *options, folder], check=True, capture_output=True)
    return folder / "bin" / "python"


def _closure(needs, extra):
    """Names of all distributions that these requirements mean, and theirs."""
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
    """Link what lies at the top of a distribution: packages, modules, metadata."""
    files = distribution(name).files or ()
    for top in sorted({file.parts[0] for file in files if file.parts[0] not in {"..", "bin"}}):
        there = Path(distribution(name).locate_file(top)).resolve()
        if not (site / top).exists() and there.exists() and top != "__pycache__":
            (site / top).symlink_to(there)


def workplace(folder):
    """A folder outside the checkout, with the files that the checks name."""
    folder.mkdir()
    (folder / "problem.json").write_text(json.dumps(PROBLEM) + "\n")
    return folder
