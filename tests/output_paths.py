"""Every way in which text leaves the program, and how secrets are removed from it.

`tests/test_output_paths.py` finds each call in the program that writes something, requires its name here, and plants
secrets before each way out."""

from __future__ import annotations

from typing import NamedTuple


class Door(NamedTuple):
    """A way out. `passes` says what leaves, and where secrets are removed. `writers` are the writing functions, as
    `file.py:qualified name`."""

    name: str
    passes: str
    writers: tuple[str, ...]


DOORS: tuple[Door, ...] = (
    Door(
        "terminal",
        "Reports, steps, event streams, progress, messages and questions of the command line. Results and events are"
        " redacted before they become lines, texts once more in `cli.redaction`; JSON by its values.",
        (
            *("cli/redaction.py:write", "cli/redaction.py:write_redacted", "cli/redaction.py:warn"),
            *("cli/redaction.py:write_json_text", "standard_streams.py:_Dispensable.write"),
            *(
                "cli/github.py:EscapedStream.write",
                "cli/github.py:EscapedStream.writelines",
                "cli/github.py:write_commands",
            ),
            *(
                "cli/redaction.py:ask",
                "cli/redaction.py:RedactedStream.write",
                "cli/redaction.py:RedactedStream.writelines",
                "cli/redaction.py:RedactedStream.finish",
            ),
            *("cli/live.py:ProgressBar.write_above", "cli/live.py:ProgressBar._write"),
            *("cli/live.py:_StreamAbove.writelines", "tui/app.py:_warn"),
        ),
    ),
    Door(
        "job summary",
        "The report as Markdown, in the file that GitHub names for it: values without secrets, as in report files.",
        ("cli/github.py:write_summary",),
    ),
    Door(
        "report files",
        "Reports of the command line and of `Report.write`: the same texts as on the terminal, and those of the writers"
        " in `reports.forms` and `exchange.exporters.export`, which are given values without secrets "
        "(`exchange.exporters.exported`).",
        (
            *("show/report_files.py:write_report", "cli/report_output.py:Output.stream"),
            *("cli/history_export.py:_report", "exchange/exporters/inspect_log.py:_add"),
        ),
    ),
    Door(
        "collectors",
        "Runs sent as traces: without secrets (`exchange.exporters.exported`), and without all that was said unless "
        "it is asked"
        " for. What headers the environment says goes to the collector as it is.",
        (),
    ),
    Door(
        "workers of a cluster",
        "What they need to make runs goes through a scheduler: suites as they are written and names of variables. A"
        " batch is refused that holds a secret (`evaluation.cluster.batch`). What happened in runs comes back redacted"
        " by the worker (`evaluation.cluster_worker`), and passes this program's doors.",
        (),
    ),
    Door(
        "Python",
        "The texts of a report for a Python caller, that of a failed assertion too, and what a refusal says: redacted"
        " by `Report` and the API. The objects are what really happened. What a test of pytest says is such a text, and"
        " reports of its sessions are written by `Report.write`.",
        ("integrations/pytest_plugin/tests.py:Batch._evaluate",),
    ),
    Door(
        "recordings",
        "Runs as files, while they go on and afterwards: `engine.redaction` redacts events, results and suite texts.",
        (
            *("engine/recordings.py:Recordings._add", "engine/recordings.py:Recordings._finish"),
            *("engine/recordings.py:_new_file", "engine/recordings.py:_RunFile.__init__"),
            "engine/recordings.py:_RunFile.write",
        ),
    ),
    Door(
        "history",
        "Batches: `engine.history_recorder` redacts plans, settings and suites, and runs by `engine.redaction`."
        " Shards have passed it where they ran, and are merged as they are.",
        (
            *("history/rows.py:start_batch", "history/rows.py:plan_runs", "history/rows.py:write_run"),
            *("history/rows.py:insert_suite", "history/rows.py:count_user_outcome"),
            *("history/rows.py:SharedTexts._insert", "history/rows.py:write_plan", "history/rows.py:count_calls"),
            *(f"history/merge.py:_ShardMerge.{name}" for name in ("_batch", "_begin", "_runs", "_run", "_shared_id")),
            *("history/merge.py:_ShardMerge._gradings", "history/merge.py:_ShardMerge._end"),
            *("history/rows.py:reopen_batch", "history/rows.py:end_batch", "history/edits.py:add_grading"),
            *("history/edits.py:name_batch", "history/writer.py:HistoryWriter._write_waiting"),
            *("history/claims.py:_opened", "history/database.py:_connected"),
        ),
    ),
    Door("program log", "Warnings and errors with their tracebacks, redacted.", ("config/logs.py:_LogFile",)),
    Door(
        "server logs",
        "What servers write to standard error, redacted across the borders of its pieces.",
        (
            "tools/server_process.py:ServerLog._write",
            "tools/server_process.py:ServerLog._shorten",
            "tools/server_process.py:_open",
        ),
    ),
    Door(
        "logs of tees",
        "Tools, calls and results that pass `workbench record --server`, each value redacted. The passing bytes are the"
        " client's and the server's own, and stay between them.",
        (
            *("exchange/observed/tee.py:ServerLogWriter.__init__", "exchange/observed/tee.py:ServerLogWriter._write"),
            "exchange/observed/tee.py:_forward",
        ),
    ),
    Door(
        "kept conversations",
        "What `workbench record` has seen, until its suite is written; each value redacted.",
        ("exchange/observed/conversations.py:ConversationJournal._write",),
    ),
    Door(
        "to programs that are recorded",
        "Answers of endpoints, byte for byte, to the program that asked for them.",
        ("exchange/observed/proxy.py:RecordingProxy._body",),
    ),
    Door("audit log", "Real executions of tools, each value redacted.", ("tools/audit.py:AuditLog._append",)),
    Door(
        "remembered tools",
        "The tools that servers have listed, remembered or pinned beside a suite, each value redacted.",
        ("tools/listings.py:StoredListings.remember", "tools/listings.py:write_pins"),
    ),
    Door(
        "logins",
        "Tokens of servers, unredacted: they are what is kept. The files and their folder are the owner's alone. The"
        " page that a browser shows has none of them.",
        (
            *("tools/login_file.py:LoginFile.write", "tools/oauth.py:ServerLogin._renewed"),
            *("tools/oauth.py:ServerLogin.log_in", "tools/redirect.py:RedirectServer._serve"),
        ),
    ),
    Door(
        "remembered judgements",
        "Judgements of values without secrets; others are remembered in memory alone.",
        ("engine/line_file.py:append_line",),
    ),
    Door(
        "app",
        "Everything drawn. Runs and results are redacted before they become lines (`RunRecord.shown_result`, the events"
        " of its view), and each drawn line passes `tui.terminal.secrets_filter`. An app that hangs says where"
        " its log is.",
        (
            *("tui/terminal/driver.py:_Terminal.write", "tui/terminal/driver.py:TolerantDriver.write"),
            "tui/terminal/driver.py:TolerantDriver.restore_terminal",
            "tui/terminal/served_driver.py:ServedDriver.start_application_mode",
            "tui/terminal/served_driver.py:ServedDriver._colour_ground",
            "tui/terminal/served_driver.py:ServedDriver._write_all",
            "tui/shell/shutdown.py:Shutdown._report_hang",
        ),
    ),
    Door(
        "clipboard",
        "Copied texts, redacted.",
        (
            "tui/kit/clipboard.py:copy_text",
            "tui/kit/clipboard.py:copy",
            "tui/kit/clipboard.py:_run_copy_command",
        ),
    ),
    Door("pictures", "The screen as SVG and as text, redacted.", ("tui/terminal/screenshot.py:_saved_in",)),
    Door(
        "breakpoints",
        "Breakpoints of a project; one with a secret in its condition is not written.",
        (
            *(
                "tui/breakpoints/project.py:BreakpointFile.write",
                "tui/breakpoints/project.py:BreakpointFile._replace_damaged",
            ),
            "tui/breakpoints/project.py:Breakpoints._replace_all",
        ),
    ),
    Door(
        "a person's own documents",
        "Suites and drafts as a person wrote them, and trust. What the program itself puts into a suite from a run"
        " or an imported file holds no secret (`authoring.proposal`). A suite of `workbench init` has"
        " variables in the place of values (`evaluation.client_servers`), and tools are redacted before.",
        (
            *("suite/drafts.py:Drafts._begun", "suite/drafts.py:Drafts._found", "suite/drafts.py:_write"),
            *("suite/files.py:_replaced", "suite/trust.py:TrustStore._update", "suite/files.py:write_atomically"),
            *(
                "tui/kit/external_editor.py:edit_in_editor",
                "tui/tree/edits.py:_move_away",
                *("tui/kit/memory.py:Memory.change", "suite/files.py:locked"),
            ),
        ),
    ),
    Door(
        "into servers and subjects",
        "What tools are called with goes to their servers as it is, and a case to the subject of its suite.",
        (
            *("tools/server_process.py:StdioTransport._write", "tools/server_process.py:_started_with_watcher"),
            *("engine/subject.py:_write", "tools/watched_start.py:main"),
            *("engine/agents/connection.py:AgentConnection._send", "engine/agents/setup.py:_written"),
            *("engine/agents/tool_server.py:_Session._send", "engine/agents/relay.py:main"),
        ),
    ),
    Door(
        "to viewers of a batch",
        "What happens in a batch that goes on without a terminal, over a socket that its user alone can open: events"
        " and results are redacted by `engine.redaction` before they become lines, other values and what its process"
        " says too, and reports are those of the command line. What became of it stands in a file.",
        ("remote/records.py:write_record",),
    ),
    Door(
        "into the process of a batch",
        "What is planned, approved and secret, over a socket pair that only the two processes hold, and its answer.",
        ("cli/detached_process.py:_Process._listen",),
    ),
    Door(
        "out of an imported program",
        "What a script tests, over a pipe to the import that runs it, which redacts what it makes of it. The program is"
        " given no secret but those that the user names: no variables but those that programs need.",
        ("exchange/importers/script_runner.py:main", "exchange/importers/dimensions_runner.py:main"),
    ),
    Door(
        "nowhere",
        "Streams that lead nowhere, and runs packed in memory.",
        (
            *(
                "cli/main.py:_silence_output",
                "standard_streams.py:open_closed_descriptors",
                "tui/app.py:discard_stream",
            ),
            "cli/detach.py:silence_descriptor",
            "grading/packed.py:_pickled",
        ),
    ),
)
