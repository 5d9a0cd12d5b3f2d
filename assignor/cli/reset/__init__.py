"""``assignor reset``: take an application back to its beginning."""
