"""Settings of a `StreamsAssignor`: identities, and how a member moves partitions."""

from uuid import UUID

import pytest

from assignor import ConfigError
from assignor.adapters.membership.options import identity_of, offered_protocol, static_identity
from probing import RELEASES, RebalanceProtocol, ReleaseError, find_release

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
    return identity_of(process_id, endpoint="h:1", rack="r", client_tags={"zone": "z"})


def test_a_static_identity_follows_from_the_names_of_application_and_instance():
    ids = [
        static_identity(made(), instance, application_id=application).process_id
        for application, instance in (("app", "i"), ("app", "i"), ("app", "j"), ("other", "i"))
    ]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


def test_a_given_process_id_stays_and_so_does_everything_else():
    static = static_identity(made(UUID(int=7)), "i", application_id=None)
    assert (static.process_id, static.instance_id) == (UUID(int=7), "i")
    assert (static.user_endpoint, static.rack, static.client_tags) == ("h:1", "r", {"zone": "z"})
