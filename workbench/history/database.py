"""Opens the file of a history: checks it, renames a damaged file, and migrates an older file to the current schema."""

from __future__ import annotations

import errno
import logging
import os
import shlex
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from workbench.config.folders import has_usual_history_name, is_beside_project
from workbench.config.read_only import is_read_only, refuse_if_read_only
from workbench.history.claims import exclusive_opening
from workbench.history.records import DamagedError, HistoryError, OtherFileError

# The tables of a history, and the migrations from earlier versions.

APPLICATION_ID = 0x576B4248
"""The mark of a history in the header of its database file."""

_FIRST = """
CREATE TABLE suites (
    id INTEGER PRIMARY KEY,
    project TEXT NOT NULL,      -- folder of the project; one below that of this file from there on: ./folder
    path TEXT NOT NULL,         -- of its file, relative to that, with slashes
    hash TEXT NOT NULL,         -- SHA-256 of its bytes, hexadecimal
    name TEXT NOT NULL,
    cases INTEGER NOT NULL,     -- how many there are in it
    text BLOB NOT NULL,         -- zlib
    blocks BLOB,                -- zlib of JSON [[case id, first character, end], ...]; NULL: cases cannot be cut out
    UNIQUE (project, path, hash)
);
CREATE TABLE batches (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT UNIQUE,           -- as a person calls it
    kind TEXT NOT NULL,         -- 'runs', or 'fork' of a run
    started_at TEXT NOT NULL,   -- ISO 8601
    ended_at TEXT,              -- NULL: it is going on, or was cut off
    program TEXT NOT NULL,
    settings TEXT NOT NULL,     -- JSON, without secrets
    planned INTEGER NOT NULL
);
CREATE TABLE parts (            -- how the runs of a batch ended: one row for each suite and model
    batch INTEGER NOT NULL REFERENCES batches ON DELETE CASCADE,
    suite INTEGER NOT NULL REFERENCES suites,
    model TEXT NOT NULL,
    planned INTEGER NOT NULL,
    passed INTEGER NOT NULL DEFAULT 0,
    warned INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    error INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0,
    stopped INTEGER NOT NULL DEFAULT 0,
    cases INTEGER NOT NULL,     -- how many of the suite's were planned
    PRIMARY KEY (batch, suite, model)
) WITHOUT ROWID;
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    batch INTEGER NOT NULL REFERENCES batches ON DELETE CASCADE,
    place INTEGER NOT NULL,     -- in the batch's plan, from 0
    suite INTEGER NOT NULL REFERENCES suites,
    case_id TEXT NOT NULL,
    case_name TEXT NOT NULL,
    model TEXT NOT NULL,
    model_of_suite INTEGER NOT NULL,
    repeat INTEGER NOT NULL,    -- from 0
    decided_by TEXT,            -- the grader, where it is another one than the case says
    is_fork INTEGER NOT NULL,
    run_id TEXT NOT NULL,       -- its id in the events
    status TEXT,                -- NULL: never finished
    score REAL,
    reason TEXT,
    broken INTEGER,
    options TEXT,               -- what it was graded by, JSON; NULL: the defaults
    began_ms REAL,              -- since 1970
    ended_ms REAL,
    latency_ms REAL,
    first_token_ms REAL,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cost_usd REAL,
    asked INTEGER,
    UNIQUE (batch, place)
);
CREATE INDEX runs_of_cases ON runs (case_id, suite);
CREATE INDEX runs_of_suites ON runs (suite);
CREATE TABLE details (
    run INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    events BLOB NOT NULL,       -- zlib of the lines of a recording between its header and its result
    outcome BLOB NOT NULL       -- zlib of the JSON of its result
);
"""

_GRADINGS = """
CREATE TABLE gradings (         -- a batch graded again, later
    id INTEGER PRIMARY KEY,
    batch INTEGER NOT NULL REFERENCES batches ON DELETE CASCADE,
    graded_at TEXT NOT NULL,
    program TEXT NOT NULL,
    hashes TEXT NOT NULL        -- '{}', and something else in some older files: nothing reads it
);
CREATE INDEX gradings_of_batches ON gradings (batch);
CREATE TABLE regrades (
    grading INTEGER NOT NULL REFERENCES gradings ON DELETE CASCADE,
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    status TEXT NOT NULL,
    score REAL,
    reason TEXT,
    broken INTEGER NOT NULL,
    options TEXT,               -- what it was graded by, JSON; NULL: the defaults
    outcome BLOB NOT NULL,      -- zlib of the JSON of its result
    PRIMARY KEY (grading, run)
) WITHOUT ROWID;
CREATE INDEX regrades_of_runs ON regrades (run);
"""

# The column is NULL in runs of earlier versions. This comment stands outside the SQL, because SQLite would store it in
# the schema.
_LOOP_TIME = "ALTER TABLE runs ADD COLUMN loop_ms REAL"

# Two columns of `details` refer to rows of `shared`. `tools` are the tools that a run's first event offers. `sample` is
# the zlib dictionary of the run's events and outcome. Both are NULL in runs of earlier versions, which share nothing.
_SHARED = """
CREATE TABLE shared (           -- what runs of a batch have in common
    id INTEGER PRIMARY KEY,
    batch INTEGER NOT NULL REFERENCES batches ON DELETE CASCADE,
    hash TEXT NOT NULL,         -- SHA-256 of the text, hexadecimal
    text BLOB NOT NULL,         -- zlib
    UNIQUE (batch, hash)
);
ALTER TABLE details ADD COLUMN tools INTEGER;
ALTER TABLE details ADD COLUMN sample INTEGER;
"""

# This column counts the runs of cases without expectations.
_NOT_GRADED = "ALTER TABLE parts ADD COLUMN not_graded INTEGER NOT NULL DEFAULT 0"

# The column `metrics` has JSON {name: value} of the named checks of answers. It is NULL if there are none.
_METRICS = "ALTER TABLE runs ADD COLUMN metrics TEXT;\nALTER TABLE regrades ADD COLUMN metrics TEXT"

# Batches with parts of the same plan have the same `uid` on every machine. The `uid` is NULL in batches of earlier
# versions and in forks.
_SHARDS = """
ALTER TABLE batches ADD COLUMN uid TEXT;
CREATE TABLE plans (            -- of batches that are shards, or merged from some
    batch INTEGER PRIMARY KEY REFERENCES batches ON DELETE CASCADE,
    suites TEXT NOT NULL,       -- JSON [id, ...]: those of the outline, in its order
    outline BLOB NOT NULL       -- zlib of JSON: all runs of the plan
);
"""

# Indexes with which queries find a page of batches, a suite's results over time, and a suite by name.
_LISTING = """
CREATE INDEX batches_of_kinds ON batches (kind);
CREATE INDEX parts_of_suites ON parts (suite, model, batch);
CREATE INDEX suites_of_paths ON suites (path, name);
"""

# `arguments` is JSON {tool: [valid, checked, unknown]} with numbers of calls. It is NULL if no call was counted.
# `parts` stores the sums over runs, so that a list of batches need not read the runs.
_ARGUMENTS = """
ALTER TABLE runs ADD COLUMN arguments TEXT;
ALTER TABLE regrades ADD COLUMN arguments TEXT;
ALTER TABLE parts ADD COLUMN valid_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE parts ADD COLUMN checked_calls INTEGER NOT NULL DEFAULT 0
"""

# `repaired` is JSON [kind, ...] of the endpoint's deviations that were repaired in a run. It is NULL if there are none.
_REPAIRED = "ALTER TABLE runs ADD COLUMN repaired TEXT"

# Runs that ended at nearly the same time are compressed together. `block` is the row in `shared` with their texts,
# which were compressed with `sample`. `nth` is the index of this run's text, from 0. `events` and `outcome` are then
# empty. Runs of earlier versions were compressed one by one; both columns are NULL for them.
_BLOCKS = "ALTER TABLE details ADD COLUMN block INTEGER;\nALTER TABLE details ADD COLUMN nth INTEGER"

# `agent` is the name and version of the agent that made a run. It is NULL for models and in runs of earlier versions.
_AGENTS = "ALTER TABLE runs ADD COLUMN agent TEXT"

# `player` is JSON with the tokens and the cost of the model that played the user. It is NULL if no model played the
# user, and in runs of earlier versions.
_PLAYERS = "ALTER TABLE runs ADD COLUMN player TEXT"

# `facts` is the row in `shared` with the facts of a block's runs. It is NULL in runs of earlier versions.
_FACTS = "ALTER TABLE details ADD COLUMN facts INTEGER"

# `user_outcome` is 'error' if the user of a conversation invalidated the run, and 'gave up' if the user gave up.
# Otherwise it is NULL, as in runs of earlier versions. `parts` stores how many runs have each of the two outcomes.
_USER_OUTCOMES = """
ALTER TABLE runs ADD COLUMN user_outcome TEXT;
ALTER TABLE regrades ADD COLUMN user_outcome TEXT;
ALTER TABLE parts ADD COLUMN user_errors INTEGER NOT NULL DEFAULT 0;
ALTER TABLE parts ADD COLUMN gave_up INTEGER NOT NULL DEFAULT 0
"""

MIGRATIONS: tuple[str, ...] = (
    *(_FIRST, _GRADINGS, _LOOP_TIME, _SHARED, _NOT_GRADED, _METRICS, _SHARDS, _LISTING),
    *(_ARGUMENTS, _REPAIRED, _BLOCKS, _AGENTS, _PLAYERS, _FACTS),
    _USER_OUTCOMES,
)
"""The migrations, each from the previous version to the next. The first creates the tables.

A file's version is its `PRAGMA user_version`. Published entries must never change, because histories made with them
exist."""


_logger = logging.getLogger(__name__)

BUSY_TIMEOUT_S = 5.0
"""The seconds to wait for another program's lock."""

_RETRY_INTERVAL_S = 0.02

_PAUSE_SHARE = 0.25
"""The pause after each step of a long task, as a share of the step's duration."""

FULLY_CHECKED_BYTES = 4 << 20
"""The size up to which a file is checked completely when it is opened for writing. A larger file is checked without its
runs.

The check would otherwise delay each batch more as the history grows. Damage in runs is found when they are read or
written."""

_SMALL_TABLES = tuple(f"quick_check({table})" for table in ("suites", "batches", "parts"))
_FULL_CHECK = ("quick_check",)
_INDEX_CHECK = ("integrity_check",)

_LOCKED = ("SQLITE_BUSY", "SQLITE_LOCKED")
_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_NOT_WRITABLE = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")
_WRITTEN_LAST = "-wal"
_SIDE_FILES = (_WRITTEN_LAST, "-shm")
"""The suffixes of SQLite's files next to a database. They hold recent data that is not in the database yet."""

_READ_ONLY_MODE = "mode=ro"
"""The mode for identifying a file without waiting for locks."""

_MAGIC = b"SQLite format 3\0"
"""The first bytes of every intact SQLite database."""

ReportProblem = Callable[[str], None]

_Result = TypeVar("_Result")


def open_for_writing(file: Path, report: ReportProblem, *, suspect: bool = False) -> sqlite3.Connection:
    """Open a history for writing, and create a missing file and its folder.

    A damaged file is renamed, and `report` is called with a message about it. With `suspect`, the whole file is
    checked, whatever its size. Raises HistoryError."""
    with as_history_errors(file):
        refuse_if_read_only(f"writing {file}")
        _refuse_links(file)
        _refuse_other_files(file)
        file.parent.mkdir(parents=True, exist_ok=True)
        with exclusive_opening(file, BUSY_TIMEOUT_S):
            large = file.exists() and file.stat().st_size > FULLY_CHECKED_BYTES
            checks = _SMALL_TABLES if large else _FULL_CHECK
            if suspect:
                checks = _INDEX_CHECK
            connection = _retry_while_locked(lambda: _opened_if_sound(file, "mode=rwc", checks))
            if connection is None:
                report(_rename_damaged(file))
                connection = _connected(file, "mode=rwc")
            _for_its_owner_only(file)
            return _migrated(connection, file)


def open_for_reading(file: Path) -> sqlite3.Connection | None:
    """Open an existing history for reading; return `None` if its file does not exist or is empty.

    A damaged file keeps its name. Raises HistoryError, and DamagedError for a damaged file."""
    with as_history_errors(file):
        _refuse_links(file)
        _refuse_folders(file)
        if not _is_there(file):
            return None
        connection = _sound_for_reading(file)
        if connection is None:
            _refuse_foreign_files(file)
            raise DamagedError(_damaged(file))
        # If the file has no tables yet, another program is creating it.
        if not connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
            connection.close()
            return None
        return _migrated(connection, file)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit everything that is written within this context, or nothing if it raises an error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite may have rolled back by itself, for example when the disk is full
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise


@contextmanager
def yielding_step() -> Iterator[None]:
    """Run one step of a long task in this context, and then pause, so that other programs can write to the history."""
    began = time.monotonic()
    yield
    threading.Event().wait((time.monotonic() - began) * _PAUSE_SHARE)


@contextmanager
def as_history_errors(file: Path) -> Iterator[None]:
    """Convert errors of SQLite and of the operating system to HistoryError, with a message that says what to do.

    Errors that show damage become DamagedError."""
    try:
        yield
    except sqlite3.Error as error:
        text = _error_text(file, error)
        if _name(error).startswith(_DAMAGE):
            raise DamagedError(text) from error
        raise HistoryError(text) from error
    except UnicodeDecodeError as error:
        # SQLite's message may quote bytes of a damaged schema, which Python cannot decode.
        raise DamagedError(_damaged(file, error)) from error
    except OSError as error:
        raise HistoryError(_system_error_text(file, error)) from error


def _error_text(file: Path, error: sqlite3.Error) -> str:
    name = _name(error)
    if name.startswith(_LOCKED):
        return f"the history {file} is locked by another program: end that program, or wait and try again"
    if name.startswith("SQLITE_FULL"):
        return _no_room(file)
    if name.startswith("SQLITE_IOERR"):
        return f"the disk refuses the history {file} ({error}): make room on it, or check that it works"
    if name.startswith(_NOT_WRITABLE):
        return _no_right(file)
    if name.startswith(_DAMAGE):
        return _damaged(file, error)
    return f"the history {file} cannot be used: {error}"


def _system_error_text(file: Path, error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return _no_right(file)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return _no_room(file)
    return f"the history {file} cannot be used: {error.strerror or error}"


def _damaged(file: Path, error: Exception | None = None) -> str:
    detail = ""
    if error is not None:
        detail = f" ({error})"
    return f"the history {file} is damaged{detail}: the next batch renames it and starts a new one; {_recovers(file)}"


def _recovers(file: Path) -> str:
    return f"'sqlite3 {shlex.quote(str(file))} .recover' may recover its content"


def _no_room(file: Path) -> str:
    return f"there is no room left for the history {file}: make room on its disk"


def _no_right(file: Path) -> str:
    done = "written"
    try:
        file.open("rb").close()
    except PermissionError:
        done = "read"
    except OSError:
        pass  # the file does not exist yet
    return f"the history {file} cannot be {done}: change its permissions, or name another with --history"


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "")


def _connected(file: Path, mode: str) -> sqlite3.Connection:
    if mode == "mode=rwc":
        # SQLite would create a file that everybody can read, so the file is created here with access only for its
        # owner. SQLite gives the files next to it the same permissions.
        with suppress(FileExistsError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))
    timeout_s = BUSY_TIMEOUT_S
    if mode == _READ_ONLY_MODE:
        timeout_s = 0
    # Without an isolation level, Python begins no transactions of its own. Connections are closed explicitly, because
    # `with connection` would only end a transaction and leave the file open.
    connection = sqlite3.connect(
        f"{file.absolute().as_uri()}?{mode}", uri=True, timeout=timeout_s, isolation_level=None
    )
    # The schema of a file from a stranger may call functions. This setting keeps SQLite from running them.
    connection.execute("PRAGMA trusted_schema = OFF")
    # SQLite ignores foreign keys unless each connection enables them.
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _refuse_links(file: Path) -> None:
    """Refuse a project's history that is a link.

    The project may come from a stranger, and the link could lead to another file of the user."""
    if is_beside_project(file):
        for path in (file.parent, file, *_files_beside(file)):
            if path.is_symlink():
                raise HistoryError(f"{path} is a link, but the history of a project must be a file")


def _files_beside(file: Path) -> list[Path]:
    return [Path(f"{file}{ending}") for ending in _SIDE_FILES]


def _refuse_folders(file: Path) -> None:
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise OtherFileError(f"{file} is a folder, not a history", "name a file with --history")
    if not stat.S_ISREG(mode):
        raise OtherFileError(f"{file} is not a file; the history must be a file on disk")


def _refuse_other_files(file: Path) -> None:
    """Refuse a file that is not a history, before anything is written to the file or next to it."""
    _refuse_folders(file)
    if not _is_there(file):
        return
    # Operational errors, such as locks, are ignored here. Opening the file for writing will wait for locks and report
    # other errors.
    with suppress(sqlite3.OperationalError):
        connection = _opened_if_sound(file, _READ_ONLY_MODE, ())
        if connection is not None:
            connection.close()
        else:
            _refuse_foreign_files(file)


def _refuse_foreign_files(file: Path) -> None:
    """Refuse a file that is not an SQLite database, such as a text or an encrypted database.

    The user probably named the file by mistake, so it is not renamed like a damaged history."""
    # Another program may have renamed the damaged file in the meantime.
    with suppress(FileNotFoundError), file.open("rb") as content:
        if not has_usual_history_name(file) and content.read(len(_MAGIC)) != _MAGIC:
            raise OtherFileError(f"{file} is not a history", "name another with --history, or move it away")


def _for_its_owner_only(file: Path) -> None:
    """Make a project's history accessible to its owner only, because it holds prompts and answers."""
    if is_beside_project(file):
        for path in (file, *_files_beside(file)):
            with suppress(FileNotFoundError, PermissionError):
                path.chmod(path.stat().st_mode & 0o700)


def _opened_if_sound(file: Path, mode: str, checks: Sequence[str]) -> sqlite3.Connection | None:
    """Open a file and return the connection; return `None` if SQLite finds damage in one of the `checks`.

    Raises OtherFileError for a database that is not a history, and all errors of SQLite that are not about damage."""
    connection = None
    sound = False
    try:
        connection = _connected(file, mode)
        # Another program may be creating the file, so all checks run in one transaction.
        connection.execute("BEGIN")
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        if application == APPLICATION_ID:
            if connection.execute("SELECT 1 FROM sqlite_schema WHERE type IN ('trigger', 'view')").fetchone():
                raise OtherFileError(f"{file} has triggers or views, which a history cannot have")
            sound = all(connection.execute(f"PRAGMA {check}").fetchone()[0] == "ok" for check in checks)
        elif connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
            raise OtherFileError(f"{file} is a different database, not a history")
        else:
            sound = True  # the database is still empty
        connection.execute("COMMIT")
        return connection if sound else None
    except sqlite3.DatabaseError as error:
        if not _name(error).startswith(_DAMAGE):
            raise
        return None
    except UnicodeDecodeError:
        return None
    finally:
        if connection is not None and not sound:
            connection.close()


def _sound_for_reading(file: Path) -> sqlite3.Connection | None:
    try:
        # Readers open the file for writing if they may. The last program that closes the file must merge SQLite's
        # write-ahead log into it, and an older schema must be migrated.
        how = "mode=ro" if is_read_only() else "mode=rw"
        return _retry_while_locked(lambda: _opened_if_sound(file, how, _SMALL_TABLES))
    except sqlite3.OperationalError as error:
        # Reading a file in WAL mode needs another file next to it, which a read-only folder cannot get. With
        # `immutable`, SQLite reads without that file. This is safe only while no program writes, and a writing program
        # would have created the file.
        if not _name(error).startswith(_NOT_WRITABLE) or any(beside.exists() for beside in _files_beside(file)):
            raise
        return _opened_if_sound(file, "mode=ro&immutable=1", _SMALL_TABLES)


def _retry_while_locked(attempt: Callable[[], _Result]) -> _Result:
    """Call `attempt` again while the file is locked, up to the time limit.

    SQLite's own timeout does not help while another program creates the file, because a lock then fails at once."""
    # The system does not report that a lock was released, so try again after a short wait.
    never = threading.Event()
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if not _name(error).startswith(_LOCKED) or time.monotonic() >= deadline:
                raise
        never.wait(_RETRY_INTERVAL_S)


def bytes_on_disk(file: Path) -> int:
    """Return the size of a history in bytes, including the log of recent writes next to its file.

    Raises OSError."""
    written_last = Path(f"{file}{_WRITTEN_LAST}")
    try:
        beside = written_last.stat().st_size
    except FileNotFoundError:
        beside = 0
    return file.stat().st_size + beside


def _is_there(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def _migrated(connection: sqlite3.Connection, file: Path) -> sqlite3.Connection:
    try:
        if (version := _version(connection, file)) < len(MIGRATIONS):
            if is_read_only():
                raise HistoryError(
                    f"the history {file} was written by an older Workbench, and a read-only view cannot migrate it: "
                    "run 'workbench history list'"
                )
            # `auto_vacuum` must be set before the first table exists. It lets removed batches return their pages to the
            # disk in steps.
            if version == 0:
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            # With a write-ahead log, programs can read while another program writes.
            _retry_while_locked(lambda: connection.execute("PRAGMA journal_mode = WAL"))
            _retry_while_locked(lambda: _migrate(connection, file))
        connection.execute("PRAGMA synchronous = FULL")  # commits survive a power failure
        return connection
    except BaseException:
        connection.close()
        raise


def _rename_damaged(file: Path) -> str:
    _refuse_foreign_files(file)
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S-%f")
    aside = file.with_name(f"{file.stem}.damaged-{stamp}{file.suffix}")
    # Rename the log first: SQLite would apply a log next to a new database, even if the log belongs to another file.
    for ending in _SIDE_FILES:
        with suppress(FileNotFoundError):
            Path(f"{file}{ending}").rename(f"{aside}{ending}")
    file.rename(aside)
    message = (
        f"the history {file} was damaged and renamed to {aside.name}, and a new one was started; {_recovers(aside)}"
    )
    _logger.error("%s", message)
    return message


def _migrate(connection: sqlite3.Connection, file: Path) -> None:
    with transaction(connection):
        # Read the version again, because another program may have migrated the file before this transaction began.
        for script in MIGRATIONS[_version(connection, file) :]:
            for statement in script.split(";\n"):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _version(connection: sqlite3.Connection, file: Path) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise HistoryError(f"the history {file} was written by a newer Workbench: update this one")
    return version
