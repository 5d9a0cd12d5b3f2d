"""Request handlers of the embedded broker, by API."""
