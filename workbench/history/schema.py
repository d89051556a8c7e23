"""The tables of a history, and the migrations from earlier versions."""

from __future__ import annotations

APPLICATION_ID = 0x576B4248
"""Marks a database as a history, in the header of its file."""

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

# NULL in runs of earlier versions. A comment inside the statement would spoil SQLite's own text of the table.
_LOOP_TIME = "ALTER TABLE runs ADD COLUMN loop_ms REAL"

# In details, `tools` are those that a run's first event offers, and `sample` is the zdict of its events and its
# outcome: ids in shared. NULL in runs of earlier versions, which have everything in themselves.
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

# Runs of cases that expect nothing yet.
_NOT_GRADED = "ALTER TABLE parts ADD COLUMN not_graded INTEGER NOT NULL DEFAULT 0"

# JSON {name: value} of the named checks of answers; NULL where there are none.
_METRICS = "ALTER TABLE runs ADD COLUMN metrics TEXT;\nALTER TABLE regrades ADD COLUMN metrics TEXT"

# A batch's uid is the same wherever parts of the same plan are run; NULL in earlier batches and in forks.
_SHARDS = """
ALTER TABLE batches ADD COLUMN uid TEXT;
CREATE TABLE plans (            -- of batches that are shards, or merged from some
    batch INTEGER PRIMARY KEY REFERENCES batches ON DELETE CASCADE,
    suites TEXT NOT NULL,       -- JSON [id, ...]: those of the outline, in its order
    outline BLOB NOT NULL       -- zlib of JSON: all runs of the plan
);
"""

# So that a page of batches, a suite's results over time, and a suite by its name are found without reading all.
_LISTING = """
CREATE INDEX batches_of_kinds ON batches (kind);
CREATE INDEX parts_of_suites ON parts (suite, model, batch);
CREATE INDEX suites_of_paths ON suites (path, name);
"""

# JSON {tool: [valid, checked, unknown]}: how many calls have valid arguments; NULL where nothing is known of any.
# In parts, those of all runs together, so that a list of batches reads no run.
_ARGUMENTS = """
ALTER TABLE runs ADD COLUMN arguments TEXT;
ALTER TABLE regrades ADD COLUMN arguments TEXT;
ALTER TABLE parts ADD COLUMN valid_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE parts ADD COLUMN checked_calls INTEGER NOT NULL DEFAULT 0
"""

# JSON [kind, ...] of the endpoint's deviations that were repaired in a run; NULL where there are none.
_REPAIRED = "ALTER TABLE runs ADD COLUMN repaired TEXT"

MIGRATIONS: tuple[str, ...] = (
    *(_FIRST, _GRADINGS, _LOOP_TIME, _SHARED, _NOT_GRADED, _METRICS, _SHARDS, _LISTING),
    *(_ARGUMENTS, _REPAIRED),
)
"""Each version's migration from the one before; the first one from nothing. A file's version is its `PRAGMA
user_version`. Published entries never change, because histories made with them exist."""
