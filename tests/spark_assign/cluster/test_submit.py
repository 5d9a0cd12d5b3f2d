"""Every `spark-submit` line of docs/cluster.md, on two workers and two executors of this machine.

The Python of the executors is a second environment that has the libraries and not this project.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pyspark
import pytest

from assignor import read_problem
from assignor.cli import make_problem
from spark_assign.cli.main import main as spark_assign
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "cluster.md"
MASTER = "local-cluster[2,1,1024]"
LIBRARIES = sysconfig.get_path("purelib")
GROUPS = 4
# A strategy that only its own module knows.
RULES = """
import numpy as np
from assignor import TaskAssignment

def first_come(state):
    return TaskAssignment(active=np.zeros(len(state.tasks), dtype=np.int64), warnings=("by rules",))
"""


def lines():
    commands = [command for block in blocks(PAGE) for command, _ in block.commands]
    return [command for command in commands if "spark-submit" in command]


def parameters():
    return [pytest.param(command, id=out_of(command)) for command in lines()]


def out_of(command):
    return re.search(r"--out hdfs:///(\S+)", command)[1]


@pytest.fixture(scope="module")
def place(tmp_path_factory, clock):
    """A directory with everything that the lines of the page name."""
    folder = tmp_path_factory.mktemp("cluster")
    with (folder / "groups.jsonl").open("w", encoding="utf-8") as file:
        for number in range(GROUPS):
            made = make_problem(clients=3, tasks=12, standbys=1, joined=1, seed=number)
            file.write(json.dumps(made | {"name": f"group-{number}"}) + "\n")
    (folder / "my_rules.py").write_text(RULES, encoding="utf-8")
    spark_assign(["pack", "--out", str(folder / "job")], standalone_mode=False)
    second_environment(folder / "second")
    packed = second_environment(folder / "environment")
    with zipfile.ZipFile(folder / "job" / "packages.zip") as archive:
        archive.extractall(packed)  # noqa: S202 our own archive
    with tarfile.open(folder / "environment.tar.gz", "w:gz") as archive:
        archive.add(folder / "environment", arcname=".")
    # A cluster of one machine writes below SPARK_HOME.
    (folder / "spark").mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (folder / "spark" / entry.name).symlink_to(entry)
    return folder


def second_environment(folder):
    """Make an environment with this one's libraries and without this project; its site-packages."""
    venv.EnvBuilder(symlinks=True).create(folder)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    # Entries of .pth files in a directory that is added this way do not count.
    (packages / "libraries.pth").write_text(f"{LIBRARIES}\n", encoding="utf-8")
    found = subprocess.run(
        [folder / "bin" / "python", "-c", "import pyarrow, spark_assign"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(folder),
        cwd=folder,
    )
    assert found.stderr.endswith("No module named 'spark_assign'\n"), found.stderr
    return packages


def environment(folder, **more):
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    python = str(folder / "second" / "bin" / "python")
    return {**kept, "PATH": path, "PYSPARK_PYTHON": python, **more}


@pytest.mark.slow
@pytest.mark.nightly("three minutes of spark-submit; every run has the job and the packed program")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("command", parameters())
def test_the_line_places_all_groups_on_the_executors(place, command):
    if shutil.which("java") is None:
        assert os.environ.get("CI") != "true"
        pytest.skip("Spark tests need Java")
    own = re.sub(r"--master \S+", f"--master '{MASTER}'", command)
    own = own.replace("hdfs:///", f"file://{place}/")
    done = subprocess.run(
        ["bash", "-c", own],
        cwd=place,
        env=environment(place, SPARK_HOME=str(place / "spark"), SPARK_LOCAL_IP="127.0.0.1"),
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4_000:]
    placed = f"{GROUPS} of {GROUPS} groups placed in "
    assert placed in done.stdout, done.stdout
    out = place / out_of(command)
    summary = json.loads((out / "_summary.json").read_text(encoding="utf-8"))
    tasks = sum(
        len(read_problem(json.loads(line)).state.tasks)
        for line in (place / "groups.jsonl").read_text(encoding="utf-8").splitlines()
    )
    assert (summary["groups"], summary["rejects"], summary["tasks"]) == (GROUPS, 0, tasks)
    # Workers ran in executors of their own.
    assert len(list((place / "spark" / "work").glob("app-*/*"))) >= 2
    assert ("my_rules" in command) == (summary["moved"] > 0)


def test_the_page_documents_the_lines_that_are_run():
    documented = lines()
    assert len(documented) == 4
    assert sum("my_rules" in command for command in documented) == 1
    assert sum("--archives" in command for command in documented) == 1
    assert all("job/run.py" in command for command in documented)
