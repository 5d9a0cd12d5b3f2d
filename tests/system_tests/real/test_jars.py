"""Jars by coordinates: from the cache, fetched, rejected; a script replaces Java and Ivy."""

import hashlib
import json
import re
import subprocess

import pytest
from click.testing import CliRunner

from probing import NEWEST_KAFKA, ReleaseError
from system_tests.cli.main import main
from system_tests.errors import EnvironmentFailureError
from system_tests.real import java as java_module
from system_tests.real.jars import (
    FOLDER_VARIABLE,
    PINS,
    broker_jars,
    broker_release,
    jar_folder,
    streams_jars,
)
from system_tests.real.java import find_java

# Writes one jar like Ivy, and its path to the file of -cachepath.
_IVY = """#!/bin/sh
case "$1" in -version) echo 'openjdk version "17"' >&2; exit 0;; esac
while [ $# -gt 0 ]; do
  case "$1" in -cache) cache=$2;; -cachepath) paths=$2;; esac
  shift
done
mkdir -p "$cache"
printf '%s' "CONTENT" > "$cache/NAME"
printf '%s' "$cache/NAME" > "$paths"
"""
_OFFLINE = """#!/bin/sh
case "$1" in -version) echo 'openjdk version "17"' >&2; exit 0;; esac
echo ":: org.apache.kafka#kafka_2.13;3.9.1: not found" >&2
exit 1
"""
_ON_KAFKA_3_9 = ["live", "--from", "3.1", "--to", "native", "--broker", "kafka:3.9"]


@pytest.fixture
def plays(tmp_path, monkeypatch, clock):
    """Replace Java by a script, with the cache in a folder of the test."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "jars"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))

    def play(script):
        executable = tmp_path / "home" / "bin" / "java"
        executable.parent.mkdir(parents=True, exist_ok=True)
        executable.write_text(script, encoding="utf-8")
        executable.chmod(0o755)
        find_java.cache_clear()

    yield play
    find_java.cache_clear()


def ivy(name="some.jar", content="bytes"):
    return _IVY.replace("NAME", name).replace("CONTENT", content)


def pin(name="some.jar", content="bytes"):
    """Pin a jar beside the jars, as the error message recommends."""
    jar_folder().mkdir(exist_ok=True)
    with (jar_folder() / "checksums.txt").open("a", encoding="utf-8") as pins:
        pins.write(f"{hashlib.sha256(content.encode()).hexdigest()}  {name}\n")


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("kafka:3.9.1", "3.9.1"),
        ("kafka:3.9", "3.9.2"),
        ("kafka:4", NEWEST_KAFKA),
        ("kafka:4.1", "4.1.2"),
    ],
)
def test_a_broker_is_named_like_a_release(name, release):
    assert broker_release(name) == release


@pytest.mark.parametrize("name", ["kafka", "rabbit:3.9", "kafka:2.8", "kafka:native", "kafka:9.9"])
def test_a_broker_that_cannot_be_is_refused(name):
    with pytest.raises(ReleaseError):
        broker_release(name)


def test_what_was_fetched_is_used_without_the_network(plays):
    pin()
    plays(ivy())
    first = broker_jars("3.9.1")
    plays(_OFFLINE)
    assert broker_jars("3.9.1") == first
    assert [jar.read_text(encoding="utf-8") for jar in first] == ["bytes"]


def test_a_jar_that_changed_is_fetched_again(plays):
    pin()
    plays(ivy())
    (jar,) = streams_jars("3.9.1")
    jar.write_text("damaged", encoding="utf-8")
    assert streams_jars("3.9.1")[0].read_text(encoding="utf-8") == "bytes"


def test_a_list_that_cannot_be_read_is_fetched_again(plays):
    pin()
    plays(ivy())
    streams_jars("3.9.1")
    listed = jar_folder() / "streams-3.9.1.json"
    listed.write_text("[{}]", encoding="utf-8")
    streams_jars("3.9.1")
    assert (
        json.loads(listed.read_text(encoding="utf-8"))[0]["sha256"]
        == hashlib.sha256(b"bytes").hexdigest()
    )


def test_what_cannot_be_fetched_is_named_in_one_sentence(plays):
    plays(_OFFLINE)
    with pytest.raises(
        EnvironmentFailureError, match=r"kafka_2.13:3.9.1 .*not found.*network"
    ) as caught:
        broker_jars("3.9.1")
    assert len(str(caught.value).splitlines()) == 1


def test_a_jar_with_another_checksum_than_the_pinned_one_is_refused(plays):
    name = PINS.read_text(encoding="utf-8").split()[-1]
    plays(ivy(name=name, content="tampered with"))
    with pytest.raises(EnvironmentFailureError, match=r"not the one in checksums\.txt"):
        streams_jars("4.3.1")


def test_a_jar_that_is_not_pinned_is_refused_with_the_way_to_pin_it(plays):
    plays(ivy())
    for _ in range(2):
        with pytest.raises(EnvironmentFailureError, match=r"some\.jar .*no checksum") as caught:
            streams_jars("4.3.1")
        assert len(str(caught.value).splitlines()) == 1
    assert not (jar_folder() / "streams-4.3.1.json").exists()
    command = re.search(r"`(cat .*)`", str(caught.value))[1]
    subprocess.run(["/bin/sh", "-c", command], check=True)
    assert [jar.name for jar in streams_jars("4.3.1")] == ["some.jar"]


def test_a_list_of_before_does_not_let_an_unpinned_jar_pass(plays):
    folder = jar_folder()
    folder.mkdir()
    (folder / "evil.jar").write_text("evil", encoding="utf-8")
    checksum = hashlib.sha256(b"evil").hexdigest()
    listed = json.dumps([{"jar": "evil.jar", "sha256": checksum}])
    (folder / "streams-4.3.1.json").write_text(listed, encoding="utf-8")
    plays(_OFFLINE)
    with pytest.raises(EnvironmentFailureError):
        streams_jars("4.3.1")


def test_a_pin_beside_the_jars_does_not_replace_a_shipped_one(plays):
    name = PINS.read_text(encoding="utf-8").split()[-1]
    pin(name, "tampered with")
    plays(ivy(name=name, content="tampered with"))
    with pytest.raises(EnvironmentFailureError, match=r"not the one in checksums\.txt"):
        streams_jars("4.3.1")


def test_a_pin_that_cannot_be_read_is_named_with_its_line(plays):
    jar_folder().mkdir()
    (jar_folder() / "checksums.txt").write_text("# own\nhalf a line\n", encoding="utf-8")
    plays(ivy())
    with pytest.raises(EnvironmentFailureError, match=r"line 2 of .*checksums\.txt"):
        streams_jars("4.3.1")


def test_a_release_of_other_digits_is_an_unknown_release():
    with pytest.raises(ReleaseError):
        broker_release("kafka:²")


def test_a_folder_that_cannot_be_written_is_named(plays, tmp_path, monkeypatch):
    plays(ivy())
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "file" / "jars"))
    with pytest.raises(EnvironmentFailureError, match=FOLDER_VARIABLE):
        broker_jars("3.9.1")


@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        ("--broker rabbit", 2, "kafka:3.9"),
        ("--broker kafka:2.8", 2, "3.3 or newer"),
        ("--broker kafka:3.9 --bootstrap-server localhost:1", 2, "leave one of them out"),
    ],
)
def test_live_refuses_brokers_that_cannot_be(arguments, status, word):
    done = CliRunner().invoke(main, f"live --from 3.1 --to native {arguments}".split())
    assert done.exit_code == status
    assert word in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_live_on_a_real_broker_without_java_is_an_environment_failure(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "jars"))
    monkeypatch.setattr(java_module, "find_spec", lambda _: None)
    find_java.cache_clear()
    done = CliRunner().invoke(main, _ON_KAFKA_3_9)
    find_java.cache_clear()
    assert done.exit_code == 3
    assert done.stderr.startswith("rolling-bounce: no Java 17 or newer is installed")
    assert len(done.stderr.splitlines()) == 1
