"""Queries over HTTP: answered here, at the owner, at a standby, or not at the moment."""

import socket
from contextlib import ExitStack
from http.client import HTTPConnection

import pytest

from assignor import ConfigError, MissingSourceTopic
from assignor.embedding import JSON, TEXT, DictStore, KeyHosts, StoreNotHeld
from assignor.embedding.query_server import QueryServer
from encoding import HostInfo

COUNTS = DictStore("counts", key=TEXT, value=JSON)
LIMIT_S = 120


class Group:
    """Members with query servers; `owner` and `standbys` are names, as the host map has them."""

    def __init__(self):
        self.servers, self.resources = {}, ExitStack()
        self.reset()

    def reset(self):
        self.owner, self.standbys, self.error = None, (), None
        self.holders, self.asked = set(), []

    def start(self, name, port):
        member = Member(self, name)
        server = QueryServer(f"127.0.0.1:{port}", member, member, COUNTS, member.answer)
        self.servers[name] = HostInfo("127.0.0.1", port)
        self.resources.callback(server.close)

    def reserved_port(self):
        """Return a port that only this process can listen on, until the end of the module."""
        kept = self.resources.enter_context(socket.socket())
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        return kept.getsockname()[1]

    def get(self, name, path="/some%2Fkey"):
        connection = HTTPConnection(*self.servers[name], timeout=LIMIT_S)
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, body


class Member:
    """Assignor and stores of one member."""

    def __init__(self, group, name):
        self.group, self.name = group, name

    def hosts_for_key(self, store, key):
        assert store == "counts"
        if self.group.error:
            raise self.group.error
        hosts, owner = self.group.servers, self.group.owner
        return KeyHosts(
            partition=3,
            active=hosts.get(owner, HostInfo("127.0.0.1", 1)) if owner else None,
            standby=tuple(hosts[name] for name in self.group.standbys),
        )

    def local_state(self, store, partition):
        assert (store, partition) == (COUNTS, 3)
        if self.name not in self.group.holders:
            raise StoreNotHeld("moved")
        return self

    def answer(self, key, state):
        assert state is self
        self.group.asked.append(self.name)
        if key == b"wrong":
            raise ZeroDivisionError
        return b"%s: %s" % (self.name.encode(), key)


@pytest.fixture(scope="module")
def _started(clock):
    made = Group()
    with made.resources:
        for name in ("one", "two", "three"):
            made.start(name, made.reserved_port())
        yield made


@pytest.fixture
def group(_started):
    _started.reset()
    return _started


@pytest.mark.parametrize("asked", ["one", "two"])
def test_any_member_answers_with_the_state_of_the_owner(group, asked):
    group.owner, group.standbys, group.holders = "one", ("three",), {"one", "three"}
    assert group.get(asked) == (200, b"one: some/key")
    assert group.asked == ["one"]


@pytest.mark.parametrize("owner", ["two", "dead"])
def test_a_standby_answers_while_the_owner_cannot(group, owner):
    """The task has just left `two`; no process listens at the host of `dead`."""
    group.owner, group.standbys, group.holders = owner, ("three",), {"three"}
    assert group.get("one") == (200, b"three: some/key")


def test_without_a_host_map_a_member_answers_with_what_it_has(group):
    group.holders = {"one"}
    assert group.get("one") == (200, b"one: some/key")
    assert group.get("two")[0] == 503


def test_nobody_can_answer(group):
    group.owner, group.standbys = "two", ("three",)
    assert group.get("one") == (503, b"no member has this key at the moment; try again\n")
    group.error = MissingSourceTopic(["words"])
    assert group.get("one")[0] == 503


def test_a_query_is_passed_on_once(group):
    """Both believe that the other one has the key."""
    group.owner = "two"
    assert group.get("one", "/here/some%2Fkey")[0] == 503
    group.holders = {"one"}
    assert group.get("one", "/here/some%2Fkey") == (200, b"one: some/key")


def test_a_defect_of_the_application_is_answered_and_logged(group, caplog):
    group.owner, group.holders = "one", {"one"}
    assert group.get("one", "/wrong")[0] == 500
    assert "the query /wrong failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert group.get("two", "/wrong")[0] == 503


def test_other_methods_and_a_used_address_are_refused(group):
    connection = HTTPConnection(*group.servers["one"], timeout=LIMIT_S)
    connection.request("POST", "/key", b"")
    assert connection.getresponse().status == 501
    connection.close()
    with pytest.raises(OSError, match="Address already in use"):
        group.start("again", group.servers["one"].port)
    with pytest.raises(ConfigError, match="endpoint 'nowhere' is not host:port"):
        QueryServer("nowhere", None, None, COUNTS, None)
