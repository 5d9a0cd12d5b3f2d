"""Quix Streams applications on this package's assignor."""

from assignor.integrations.quix.application import QuixKeywords, streams_assignor

__all__ = ["QuixKeywords", "streams_assignor"]
