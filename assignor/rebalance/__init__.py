"""One rebalance: the member's subscription, the leader's placement and answers, adoption.

Names are loaded with the first that is used, so that the modules of the leader load only what they
import themselves.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assignor.rebalance.public import *  # noqa: F403 one list of names, in that module
    from assignor.rebalance.public import __all__ as __all__
else:

    def __getattr__(name: str) -> object:
        """Load a public name, and with the first one all others."""
        public = importlib.import_module("assignor.rebalance.public")
        if name != "__all__" and name not in public.__all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(public, name)
