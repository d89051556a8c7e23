"""The program `workbench`, also as `python -m workbench`."""

from workbench.startup import end_at_interrupt

# Handle Ctrl+C before the slow imports: during these it would print a traceback.
end_at_interrupt()

import gc  # noqa: E402
import sys  # noqa: E402

from workbench.cli.main import main as run  # noqa: E402


def main() -> int:
    """Run the command line and return the exit code."""
    try:
        return run()
    finally:
        # At its end, Python collects garbage several times, which takes a fifth of a short command.
        gc.freeze()


if __name__ == "__main__":
    sys.exit(main())
