"""`spark-assign pack`: an archive from which the commands run, without this checkout."""

import subprocess
import sys
import zipfile
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from spark_assign.cli import pack as pack_command
from spark_assign.cli.main import main
from tests.project.checkout import NAMES


def pack(folder, *more):
    return CliRunner().invoke(main, ["pack", "--out", str(folder), *more])


@pytest.mark.usefixtures("clock")
def test_packed_commands_run_without_the_project(tmp_path):
    result = pack(tmp_path / "job")
    assert result.exit_code == 0, result.stderr
    job = tmp_path / "job"
    assert f"spark-submit --py-files {job}/packages.zip {job}/run.py batch" in result.stdout
    # -S: an interpreter to which site-packages, and so this project, are added by hand or not.
    code = (
        "import sys, runpy; sys.path[:0] = [sys.argv[1], sys.argv[2]]; "
        "script = sys.argv[3]; sys.argv = [script, 'batch', '--help']; "
        "runpy.run_path(script, run_name='__main__')"
    )
    libraries = next(path for path in sys.path if path.endswith("site-packages"))
    given = [str(job / "packages.zip"), libraries, str(job / "run.py")]
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, *given],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: spark-assign batch ")


def test_archive_is_the_same_each_time_and_holds_what_the_wheel_holds(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        assert pack(folder).exit_code == 0
    archive = first / "packages.zip"
    assert archive.read_bytes() == (second / "packages.zip").read_bytes()
    names = zipfile.ZipFile(archive).namelist()
    assert {name.split("/")[0] for name in names} == {
        "assignor",
        "encoding",
        "probing",
        "spark_assign",
        "system_tests",
    }
    assert not [n for n in names if "__pycache__" in n or n.startswith("system_tests/support/")]
    again = pack(first)
    assert again.exit_code == 2
    assert "packages.zip exists; give another --out, or --overwrite" in again.stderr
    assert pack(first, "--overwrite").exit_code == 0
    archive.rename(tmp_path / "other")
    archive.symlink_to(tmp_path / "other")
    before = archive.stat()
    again = pack(first, "--overwrite")
    assert (again.exit_code, "is a symbolic link to" in again.stderr) == (3, True)
    assert archive.stat() == before
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert pack(tmp_path / "file").exit_code == 3


def test_files_of_the_user_and_links_stay_here(tmp_path, monkeypatch):
    package = tmp_path / "encoding"
    (package / "inner").mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret.py").write_text("key", encoding="utf-8")
    for name in ("__init__.py", "inner/__init__.py", "inner/module.py"):
        (package / name).write_text("", encoding="utf-8")
    for name in (".env", "id_rsa", "credentials.json", "notes.txt", ".hidden.py", "a-copy.py"):
        (package / name).write_text("key", encoding="utf-8")
    (package / "link.py").symlink_to(elsewhere / "secret.py")
    (package / "linked").symlink_to(elsewhere, target_is_directory=True)
    monkeypatch.setattr("spark_assign.cli.pack.PACKAGES", ("encoding",))
    spec = SimpleNamespace(origin=str(package / "__init__.py"))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: spec)
    assert pack(tmp_path / "job").exit_code == 0
    names = zipfile.ZipFile(tmp_path / "job/packages.zip").namelist()
    assert names == [
        "encoding/__init__.py",
        "encoding/inner/__init__.py",
        "encoding/inner/module.py",
    ]


def test_the_archive_has_all_files_of_the_checkout_that_packages_need():
    left_out = ("system_tests/support/", "system_tests/scenarios/")
    wanted = {
        name
        for name in NAMES
        if name.split("/")[0] in pack_command.PACKAGES
        and not name.startswith(left_out)
        and not name.endswith("py.typed")
    }
    assert {name for name, _ in pack_command._files()} == wanted
