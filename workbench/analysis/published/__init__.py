"""What the published systems report of a suite, each in its own numbers and with its own roundings."""
