"""The wire formats of model APIs: bodies of requests, and the events of an answer."""
