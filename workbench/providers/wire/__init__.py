"""The wire formats of model APIs. They write the bodies of requests and read the events of answers."""
