"""The wire formats of model APIs: what a request's body says, and how the events of an answer are read."""
