"""Models behind HTTP endpoints: connections, rate limits, errors, and the models themselves."""
