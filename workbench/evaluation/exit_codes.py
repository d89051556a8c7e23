"""Exit codes of commands."""

OK = 0
"""Every case passed or warned, or the requirements were met."""
QUALITY_MISSED = 1
"""A case failed, or a gate or `--min-score` was missed."""
NOTHING_GRADED = 4
"""No run that counts was graded, so no requirement was missed."""
USAGE = 2
"""Wrong usage, a suite with problems, missing trust, a missing extra, or no selected case."""
INFRASTRUCTURE = 3
"""A run ended in an infrastructure error, or such an error prevented all runs. This code takes precedence over
`QUALITY_MISSED`."""
BROKEN_PIPE = 141
"""The reader closed the output, as `| head` does. A program ended by SIGPIPE has this exit code."""
INTERRUPTED = 130
"""Stopped by Ctrl+C, SIGTERM or SIGHUP; finished runs are reported."""

DESCRIPTIONS = {
    OK: "all cases passed or warned, or the demands were met",
    QUALITY_MISSED: "a case failed, or a demand was missed",
    USAGE: "wrong usage, a broken suite, missing trust, no case selected, or a file that cannot be written",
    INFRASTRUCTURE: "a run ended in an infrastructure error or was not made",
    NOTHING_GRADED: "no run that counts was graded",
    INTERRUPTED: "interrupted",
}
"""The descriptions of exit codes in the `--help` of commands that judge cases."""
