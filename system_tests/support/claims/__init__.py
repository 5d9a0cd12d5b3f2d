"""Claims about formats, settings and rollback, tried with real members of Kafka Streams.

`python -m system_tests.support.claims` (`make rehearse-claims`) runs them one after the other.
"""

from system_tests.support.claims.application import Application, MemberEnded, WrongResults
from system_tests.support.claims.model import CLAIMS, Claim, Outcome, Run
from system_tests.support.claims.runner import rehearse

__all__ = [
    "CLAIMS",
    "Application",
    "Claim",
    "MemberEnded",
    "Outcome",
    "Run",
    "WrongResults",
    "rehearse",
]
