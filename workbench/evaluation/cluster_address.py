"""Where the runs of a plan are made: in worker processes of this machine, or by those of a dask scheduler. Imports
nothing of dask."""

from __future__ import annotations

import re

from workbench.dataclasses import dataclass
from workbench.limits import MAX_CLUSTER_WORKERS

_SCHEDULER = re.compile(r"(?:tcp|tls)://[^\s/@]+:(\d{1,5})")
_LOCAL = "local:"


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """`workers` processes of this machine, or the address of a scheduler."""

    text: str
    workers: int = 0

    @property
    def is_local(self) -> bool:
        """Whether the workers are started for this batch, on this machine."""
        return self.workers > 0


def cluster_address(text: str) -> ClusterAddress:
    """Read `local:8` or `tcp://scheduler:8786`. Raises ValueError for anything else."""
    if text.startswith(_LOCAL):
        number = text.removeprefix(_LOCAL)
        if number.isdecimal() and 1 <= int(number) <= MAX_CLUSTER_WORKERS:
            return ClusterAddress(text, int(number))
        raise ValueError(MAX_CLUSTER_WORKERS.reached(given=repr(number)))
    if (match := _SCHEDULER.fullmatch(text)) is not None and 0 < int(match[1]) < 65536:
        return ClusterAddress(text)
    raise ValueError(
        f"a cluster is local:N or the address of a dask scheduler, such as tcp://scheduler:8786, not {text!r}"
    )
