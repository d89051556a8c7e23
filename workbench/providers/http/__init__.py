"""Models behind HTTP endpoints: connections, turns, faults, and the model that puts them together."""
