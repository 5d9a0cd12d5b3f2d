"""Settings of a `StreamsAssignor`: identities, and how a member moves partitions."""

from uuid import UUID, uuid4

import pytest

from assignor import ConfigError, MemberIdentity, StreamsMember, Topology, sticky
from assignor.adapters.kafka_python import StreamsAssignor
from assignor.adapters.membership import check_listed, offered_protocol
from encoding import Assignment, encode_assignment
from probing import RELEASES, RebalanceProtocol, ReleaseError, find_release
from tests.assignor.adapters import members

TOPOLOGY = Topology().add_source("lines", topics=["lines"]).subtopologies("app")
EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE


@pytest.mark.parametrize(
    ("release", "upgrade_from", "offered"),
    [
        ("native", None, COOPERATIVE),
        ("native", "0.10.0", EAGER),
        ("native", "2.3", EAGER),
        ("native", "2.4", COOPERATIVE),
        ("3.9", None, COOPERATIVE),
        ("3.9", "2.3", EAGER),
        ("3.9", "2.4", COOPERATIVE),
        ("2.3", None, EAGER),
    ],
)
def test_a_member_is_cooperative_if_release_and_pin_let_it(release, upgrade_from, offered):
    assert offered_protocol(find_release(release), upgrade_from, "cooperative") is offered


def test_eager_is_always_possible():
    for release in RELEASES:
        assert offered_protocol(release, None, "eager") is EAGER


def test_an_unknown_protocol_or_pin_is_refused():
    with pytest.raises(ConfigError, match="'eager', 'cooperative'"):
        offered_protocol(find_release("native"), None, "lazy")
    with pytest.raises(ReleaseError, match=r"upgrade\.from='7\.0'"):
        offered_protocol(find_release("native"), "7.0", "eager")


def made(process_id=None):
    return MemberIdentity(
        process_id=process_id or uuid4(), user_endpoint="h:1", rack="r", client_tags={"zone": "z"}
    )


def test_a_static_identity_follows_from_the_names_of_application_and_instance():
    ids = [
        made().as_static(instance, application_id=application).process_id
        for application, instance in (("app", "i"), ("app", "i"), ("app", "j"), ("other", "i"))
    ]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


def test_a_given_process_id_stays_and_so_does_everything_else():
    static = made(UUID(int=7)).as_static("i", application_id=None)
    assert (static.process_id, static.instance_id) == (UUID(int=7), "i")
    assert (static.user_endpoint, static.rack, static.client_tags) == ("h:1", "r", {"zone": "z"})


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"endpoint": "localhost"}, "host:port"),
        ({"endpoint": "localhost:j87"}, "host:port"),
        ({"endpoint": "localhost:0"}, "host:port"),
        ({"endpoint": 8080}, "host:port"),
        ({"client_tags": {f"k{number}": "v" for number in range(6)}}, "up to 5 tags"),
        ({"client_tags": {"k" * 21: "v"}}, "1 to 20 characters"),
        ({"client_tags": {"k": "v" * 31}}, "up to 30"),
        ({"client_tags": {"": "v"}}, "1 to 20 characters"),
        ({"client_tags": {"zone": 3}}, "up to 30"),
        ({"client_tags": [("zone", "a")]}, "up to 5 tags"),
        ({"rack": "r" * 32_768}, "32767 bytes"),
        ({"rack": 7}, "32767 bytes"),
        ({"process_id": "one"}, "uuid.UUID"),
        ({"application_id": ""}, "application_id"),
        ({"application_id": "an app"}, "application_id"),
        ({"application_id": "a" * 250}, "application_id"),
        ({"application_id": "a" * 240}, "Kafka takes 249"),
    ],
)
def test_what_no_other_member_could_read_is_refused_before_the_first_join(settings, why):
    with pytest.raises(ConfigError, match=why):
        assignor_of(**settings)


def assignor_of(**settings):
    return members.made(**settings)[0]


@pytest.mark.parametrize("given", ["sticky", "assignor:sticky", sticky])
def test_a_strategy_is_a_name_or_a_function(given):
    assert assignor_of(strategy=given)._driver.member.leader.strategy is sticky


@pytest.mark.parametrize(("given", "why"), [("stiky", "did you mean sticky"), (7, "refused")])
def test_a_strategy_that_is_neither_is_refused_at_once(given, why):
    with pytest.raises(ConfigError, match=why):
        assignor_of(strategy=given)


@pytest.mark.parametrize("instance_id", ["", "an instance", "i" * 250, "..", 5])
def test_an_instance_id_that_kafka_refuses_is_refused_when_the_consumer_is_attached(instance_id):
    with pytest.raises(ConfigError, match="group_instance_id"):
        made().as_static(instance_id, application_id=None)


def test_limits_themselves_are_taken_and_reach_the_wire():
    assignor = assignor_of(
        endpoint=f"{'h' * 255}:65535",
        client_tags={f"{number}{'k' * 19}": "v" * 30 for number in range(5)},
        rack="r" * 32_767,
        application_id="a" * 200,
    )
    assert assignor.metadata({"lines"}).user_data
    assert assignor.failures == []


def test_an_endpoint_that_nobody_can_read_is_never_missed():
    identity = MemberIdentity(process_id=UUID(int=1))
    object.__setattr__(identity, "user_endpoint", "localhost")
    member = StreamsMember(find_release("native"), identity, subtopologies=TOPOLOGY)
    value = Assignment(
        version=11, commonly_supported_version=11, partitions_by_host={("there", 1): ()}
    )
    received = member.receive((), encode_assignment(value), now_ms=0)
    assert "host is missing" not in [command.rule for command in received.commands]


def test_the_class_instead_of_an_instance_is_named():
    # kafka-python calls a class that is listed.
    with pytest.raises(TypeError, match=r"needs an instance, .*=\[StreamsAssignor\(topology\)\]"):
        StreamsAssignor()


@pytest.mark.parametrize("place", [0, 1])
def test_two_assignors_of_tasks_in_one_consumer_are_refused_by_attach(place):
    topology = Topology().add_source("lines", topics=["lines"])
    listed = [StreamsAssignor(topology), StreamsAssignor(topology)]
    with pytest.raises(ConfigError, match=r"two StreamsAssignors are .*; keep one"):
        check_listed(listed[place], listed)
