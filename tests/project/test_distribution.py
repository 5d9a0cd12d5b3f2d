"""Wheel and sdist: their content, and the wheel in a clean environment."""

import re
import sys
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.distribution.archives import (
    PACKAGES,
    ROOT,
    archives_in,
    build,
    metadata,
    needs,
    sdist_files,
    unpack,
    wheel_files,
)
from tests.distribution.checks import SCRIPTS, WITH, checks_for, front_door_check, wrong_with
from tests.distribution.environments import linked, workplace
from tests.nightly import sample
from tests.project.checkout import NAMES

NOT_SHIPPED = re.compile(r"system_tests/(scenarios|support)/.*")
FOR_DEVELOPERS = {"dev", "mutate"}
IN_ITS_OWN_ENVIRONMENT = {"quix"}  # `make test-quix`
NOT_FOR_THE_SDIST = (".ci/",)

# Builds and commands take seconds, on a busy machine minutes; nothing here depends on time.
pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def archives(tmp_path_factory, clock):
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder, "--wheel", "--sdist")
    return archives_in(folder)


@pytest.fixture(scope="module")
def wheel(archives):
    return wheel_files(archives.wheel)


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_five_packages_but_tests_and_their_harness(wheel):
    own = {name for name in NAMES if name.partition("/")[0] in PACKAGES}
    shipped = {name for name in own if not NOT_SHIPPED.fullmatch(name)}
    assert {name for name in wheel if ".dist-info/" not in name} == shipped


@pytest.mark.slow
def test_the_wheel_is_marked_as_typed_and_licensed(wheel, archives):
    assert [package for package in PACKAGES if f"{package}/py.typed" not in wheel] == []
    assert [name for name in wheel if name.endswith(".dist-info/licenses/LICENSE")]
    assert metadata(archives.wheel)["License-Expression"] == "Apache-2.0"


@pytest.mark.slow
def test_the_wheel_brings_three_commands(wheel):
    (name,) = [name for name in wheel if name.endswith("entry_points.txt")]
    lines = wheel[name].decode().splitlines()
    assert sorted(line.split(" = ")[0] for line in lines if " = " in line) == sorted(SCRIPTS)


@pytest.mark.slow
def test_nothing_but_an_extra_brings_a_client_spark_or_a_plotting_library(archives):
    needed = [
        requirement
        for requirement in map(Requirement, needs(archives.wheel))
        if requirement.marker is None
    ]
    assert {requirement.name for requirement in needed} == {
        "click",
        "filelock",
        "msgpack",
        "networkx",
        "numpy",
        "rich",
    }


@pytest.mark.slow
def test_the_sdist_is_what_git_keeps_and_nothing_else(archives):
    kept = {name for name in NAMES if not name.startswith(NOT_FOR_THE_SDIST)}
    assert sdist_files(archives.sdist) == kept | {"PKG-INFO"}


@pytest.mark.slow
def test_the_sdist_builds_the_same_wheel(archives, wheel, tmp_path):
    (tmp_path / "sdist").mkdir()
    build(unpack(archives.sdist, tmp_path / "sdist"), tmp_path / "dist", "--wheel")
    (again,) = (tmp_path / "dist").glob("*.whl")
    assert wheel_files(again) == wheel


@pytest.mark.usefixtures("clock")
def test_front_doors_print_nothing_start_nothing_and_load_no_client(tmp_path):
    assert wrong_with(front_door_check(), sys.executable, tmp_path) is None


def test_every_extra_and_every_python_that_is_promised_is_tried():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(WITH) == (
        set(project["optional-dependencies"]) - FOR_DEVELOPERS - IN_ITS_OWN_ENVIRONMENT
    )
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    (tried,) = re.findall(
        r"^PYTHONS \?= (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert tried.split() == promised


@pytest.mark.slow
@pytest.mark.parametrize("extra", ["", "kafka", "aiokafka", "metrics", "report"])
def test_the_wheel_works_in_a_clean_environment(extra, archives, tmp_path):
    python = linked(archives.wheel, extra, tmp_path / "venv")
    place = workplace(tmp_path / "place")
    checks = sample(
        checks_for(extra), every=3, reason="26 more commands, 40 s; every run starts their entries"
    )
    assert [found for check in checks if (found := wrong_with(check, python, place))] == []
