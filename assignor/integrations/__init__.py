"""Frameworks on this package's assignor; each sub-package needs the framework that it is for."""
