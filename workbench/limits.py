"""Limits on the size of input from users, models, servers and files, with their units and reasons.

A limit that a user can reach has a message. Limits of a layout or an algorithm are defined next to it instead."""

from __future__ import annotations

from collections.abc import Mapping


class Limit(int):
    """A limit that a user can reach, with the message for this case.

    `happened` says what exceeds the limit. In it, `{limit}` stands for the number, `{mib}` for the number in MiB, and
    other names for arguments of `reached`. `way_out` is advice for the user, or empty."""

    happened: str
    way_out: str

    def __new__(cls, number: int, happened: str, way_out: str = "") -> Limit:
        limit = super().__new__(cls, number)
        limit.happened, limit.way_out = happened, way_out
        return limit

    def __reduce__(self) -> tuple[type[Limit], tuple[int, str, str]]:
        return Limit, (int(self), self.happened, self.way_out)

    def reached(self, **about: object) -> str:
        """Return the message for a value above the limit. `about` has the values for other names in the message."""
        words = self.happened
        if self.way_out:
            words += f": {self.way_out}"
        return self._filled(words, about)

    def exceeded(self, **about: object) -> str:
        """Return the message without the advice, for a caller that shows the advice elsewhere."""
        return self._filled(self.happened, about)

    def _filled(self, words: str, about: Mapping[str, object]) -> str:
        # This import is lazy, because every command imports the limits, and few reach one.
        from workbench.numerals import count_text, setting_text

        return words.format(limit=count_text(self), mib=f"{setting_text(self / 2**20)} MiB", **about)


# Batches and clusters.

MAX_REPEATS = Limit(1_000, "must be a whole number from 1 to {limit}, not {given}")
"""How often a case runs in one batch. A thousand runs distinguish pass rates three percentage points apart."""

MAX_DEMANDED_CALLS = Limit(1_000, "must demand at most {limit} calls", "write a lower number")
"""How many calls `times` of one expected call may demand. Graders see each as an expectation of its own."""

MAX_LOOKS = 10
"""How often an early-stopping batch evaluates its runs. The table of critical values ends there."""

MAX_CLUSTER_WORKERS = Limit(512, "a local cluster has 1 to {limit} workers, as in local:8, not {given}")
"""Worker processes on one machine. Larger machines are rare, and a typing error must not start thousands."""

MAX_PLANNED_RUNS = 10_000_000
"""Runs of a stored plan. Reading a plan allocates memory for each, so a damaged file must not set the number."""

MAX_VIEWERS = Limit(100, "{limit} viewers are attached already", "detach one")
"""Terminals attached to one batch. Each holds a socket and a queue of the batch's process."""

MAX_SOCKET_PATH_BYTES = 100
"""The path of a batch's socket. macOS and the BSDs allow 104 bytes, Linux 108, including the final zero."""

MAX_VIEWER_LINE_BYTES = 1 << 16
"""A line that a viewer sends, in bytes. Viewers send short commands."""

MAX_VIEWER_BACKLOG_BYTES = 4 << 20
"""How far a viewer may fall behind before it is dropped; a single line may be longer."""

MAX_PIPED_BYTES = 1 << 26
"""One line from a batch or an MCP server, or one packet of the app in a browser.

The limit suffices for the largest run, and is small enough for memory."""

MAX_DOCUMENT_RUNS = Limit(
    200_000, "a report as {form} is one document, which has room for {limit} runs, and not for {runs:,}", "{instead}"
)
"""Runs of a report that is one document. Its reader needs all of it in memory."""

# The size of one answer of a model. No suite needs more, and few models could send more. `docs/models.md` lists these
# limits.

_TOO_MUCH = "the model sent too much: more than {limit} "

MAX_ANSWER_CHARS = Limit(2 << 20, _TOO_MUCH + "characters in one answer")
"""Text, reasoning and arguments together: some 500,000 tokens."""

MAX_ANSWER_CALLS = Limit(1_000, _TOO_MUCH + "calls in one answer")
"""Calls of one answer. Models make tens in parallel."""

MAX_ANSWER_PARTS = Limit(10_000, _TOO_MUCH + "parts in one answer")
"""Blocks, items or details of reasoning, which are in memory until the answer ends."""

MAX_PAUSES = Limit(
    20, "the provider paused one answer more than {limit} times", "let its tools do less, as with max_uses"
)
"""Continuations of one answer. A provider pauses an answer while its own tools work, and makes up to ten calls in each
continuation."""

MAX_CALL_ARGUMENTS = Limit(1_000, _TOO_MUCH + "arguments of a call in one answer")
"""Named arguments of one call. Tools declare at most some hundred."""

MAX_ANSWER_VALUES = Limit(100_000, _TOO_MUCH + "values in the arguments of calls in one answer")
"""Values in the arguments of all calls, at any depth."""


def too_much_sent(limit: int) -> str:
    """Return the message for a model whose answer takes more bytes than the limit."""
    return f"the model sent too much: more than {limit >> 20} MiB in one answer"


# What endpoints and servers send.

MAX_BODY_BYTES = Limit(256 << 20, "a request of more than {mib} is not forwarded", "shorten the conversation")
"""A request, or all bytes of an endpoint for one answer. The protocol counts: chunks of one token each multiply the
largest answer by a hundred."""

MAX_MESSAGE_BYTES = Limit(32 << 20, "sent more than {mib} as {what}", "let the tool answer with less")
"""One message of an MCP server, one event of a stream, or an answer in one document.

Legacy SSE has the MCP SDK's own limit of 1 MiB."""

MAX_ERROR_BYTES = 64 << 10
"""Bytes that are read of an error, of a web page in place of an answer, and of a failed program's output. The reason is
near the beginning, or at the end of a traceback."""

MAX_KEY_BYTES = Limit(16 << 10, "more than {limit} bytes", "it must print the key alone")
"""The key that a command prints. The longest tokens have some 8 KiB."""

MAX_LOGIN_BYTES = Limit(1 << 20, "answers with more than {mib}", "correct the url of the server")
"""One answer of an authorization server. Tokens and metadata have some kilobytes."""

MAX_HEADER_BYTES = 64 << 10
"""One line of the head of a response. Gateways put long policies there; servers accept 8 to 32 KiB."""

MAX_LISTING_BYTES = Limit(16 << 20, "sends more than {mib} as its list of models", "correct base_url")
"""A body that is not a model's answer. A listing of ten thousand models has a tenth of it."""

MAX_HOLD_SECONDS = 60.0
"""The longest pause that an endpoint may impose on all runs of a model: rate limits usually count per minute."""

MAX_UNPACKED_BYTES = Limit(64 << 20, "unpacks to more than {mib}", "send it without compression")
"""Bytes that are decompressed at a time: a megabyte of zlib can expand to a gigabyte."""

MAX_LISTING_PAGES = Limit(100, "continues after {limit} pages", "let it list more tools on a page")
"""Pages of a listing of tools. A server that repeats its cursor would never end the listing."""

MAX_CALL_SECONDS = Limit(3_600, "still reports progress after {limit} s", "let it do less in one call")
"""Seconds of one call whose progress extends its time limit. Without this limit, a server could keep a call open for
ever."""

MAX_CALL_QUESTIONS = Limit(
    100, "sent more than {limit} requests during {what}", "answer the server so that it does not ask again"
)
"""Requests of a server during one call. Otherwise a server could repeat a request for ever."""

MAX_SERVED_RUNS = 16
"""Runs that have servers with `state = "run"` at the same time; others wait. A server takes 70 to 80 MB."""

MAX_FAILED_STARTS = Limit(
    3,
    "server {server!r} failed to start {limit} times in a row, and is not started again in this batch ({error})",
    "run the rest of the batch when it starts",
)
"""Starts of servers with `state = "run"` that fail in a row. Each may take as long as the limit of a start."""

MAX_INSTRUCTIONS_BYTES = Limit(
    2_048, "has {size:,} bytes of instructions, of which the first {limit} are sent", "shorten them"
)
"""A server's instructions in the system prompt. Claude Code cuts them at this length."""

MAX_MEDIA_BYTES = Limit(20 << 20, "is larger than {mib}", "make it smaller")
"""One image or sound. OpenAI takes images of 20 MB; Anthropic takes requests of 32 MB."""

MAX_ROWS_BYTES = Limit(32 << 20, "is larger than {mib}", "split it among several cases")
"""One file of rows of a case. A row of a kilobyte is long."""

MAX_ROWS = Limit(20_000, "has more than {limit} rows", "split them among several cases")
"""Rows of one case. Each becomes a case of its own; ten thousand of them take 100 MB of memory."""

MAX_CELL_CHARS = Limit(
    131_072,
    "has a cell of more than {limit} characters",
    "close every quotation mark, or write long texts as JSON Lines (.jsonl)",
)
"""One cell of CSV, by the limit of Python's reader. An open quotation mark makes one cell of all following text."""

MAX_RUN_MEDIA_BYTES = Limit(50 << 20, "the images and sounds of this run exceed {mib}", "let tools send fewer")
"""All images and sounds of one run. Each request sends them again, and OpenAI takes 50 MB together."""

MAX_KEPT_MEDIA_BYTES = Limit(
    4 << 20, "the history and recordings keep {mib} of images and sounds of a run", "run the case again"
)
"""Images and sounds of tools in the events of one run. Batches store a thousand such runs."""

MAX_PROGRESS_CHARS = 200
"""Stored characters of a progress notice, which is shown on one line."""

MAX_SERVER_ERROR_CHARS = 1_000
"""Characters stored of the text of a server's error: a server may send megabytes."""

MAX_OFFERED_TOOLS = Limit(
    128, "{offered} tools are offered at once; OpenAI refuses more than {limit}", 'let cases offer fewer: offer = ["…"]'
)
"""Tools of one request, by OpenAI's reference of the API."""

MAX_TOOL_NAME_CHARS = 64
"""A name of a tool in a request: OpenAI and Anthropic refuse longer ones."""

MAX_COLLECTOR_REQUEST_BYTES = 4 << 20
"""A request to a collector of traces. By default, collectors accept about 20 MiB."""

MAX_COLLECTOR_ANSWER_BYTES = 1 << 20
"""The answer of a collector, which lists the rejected items."""

MAX_OUTPUT_BYTES = Limit(
    16 << 20, "{who} wrote more than {mib} to standard output and was ended", "print only the JSON of the run"
)
"""Standard output of a suite's own program: one run as JSON."""

MAX_AGENT_ITEMS = Limit(200_000, "the model sent too much: more than {limit} messages of its agent in one run")
"""Messages of one agent in one run. A piece of text is a message, and an answer has some thousand of them."""

MAX_AGENT_LINES = 200
"""What an agent tells beside its answer in one run, such as plans and lines that are no message."""

MAX_STRAY_LINES = 200
"""Logged lines of a server's standard output that are not messages. A server that logs there would fill the file."""

MAX_STRAY_LINE_CHARS = 2_000
"""Characters that are logged of such a line."""

MAX_RATIONALE_CHARS = 1_000
"""Characters stored of a judge's reason, which is shown beside the check. Judges are asked for a sentence."""

MAX_PROVIDER_RESULT_CHARS = 4_000
"""Characters shown of the result of a provider's own tool. All of it goes back to the provider."""

MAX_JSON_LEVELS = Limit(100, "nested more than {limit} levels deep", "flatten it")
"""Levels of a call's arguments or of an imported value. Real tools need a handful; JSON and pydantic give up at some
hundreds."""

MAX_MILLISECONDS = 1e12
"""The longest accepted duration that another system reports: 31 years, which dates can still represent."""

MAX_TOKENS = 10**15
"""The largest accepted token count that another system reports: SQLite and protobuf have 64 bits for their sums."""

MAX_SCHEMA_PARAMETERS = 2_000
"""Analysed parameters of one tool: references can make a short schema endlessly wide."""

# Files.

MAX_FILE_BYTES = Limit(256 << 20, "is larger than {mib}", "split it")
"""A file, and all that is unpacked from an archive. Each byte may take four of memory as a text."""

MAX_FILE_VALUES = Limit(5_000_000, "holds more than {limit} values", "split it")
"""Values in one file. Aliases of YAML can expand a small file to many values, and three bytes of JSON take seventy of
memory."""

MAX_YAML_BYTES = Limit(4 << 20, "is YAML of more than {mib}", "write it as JSON")
"""A file of YAML. The parser holds several hundred bytes for each value until all of them are read."""

MAX_YAML_NUMBER_CHARS = Limit(1_000, "a number has more than {limit} characters", "quote it")
"""Characters of a number in YAML. YAML has numbers in base 60, whose reading takes quadratic time."""

MAX_INCLUDED_FILES = 5
"""Nested levels of promptfoo's files that name files. Two levels are usual; a circle has no end."""

MAX_TEST_CASES = Limit(64, "stands for {count:,} cases, more than {limit}", "list fewer values of its variables")
"""Cases of one test of promptfoo: each prompt with each of the listed values of its variables."""

MAX_ACCEPTED_VALUES = Limit(64, "has {count:,} accepted values, more than {limit}", "leave the row out")
"""Whole values of one argument of BFCL. Its inner alternatives are written out, so they multiply."""

MAX_STORED_TEXT_BYTES = Limit(64 << 20, "a text is longer than {mib}", "shorten what the tools answer")
"""The longest text that the history stores and reads: a thousand times the events of a long run."""

MAX_STATE_FILE_BYTES = 4 << 20
"""A file with breakpoints or with the app's memory. This program writes no larger file."""

MAX_CLIENT_FILE_BYTES = 20_000_000
"""Files of other clients that are searched for servers. Some clients keep their history in the same file."""

MAX_RECORDING_HEAD_BYTES = 1 << 24
"""The first line of a file, which shows whether the file is a recording. It holds the suite."""

MAX_PATTERN_ITEMS = Limit(
    100_000,
    "the pattern {pattern} cannot be searched for: it repeats its parts more than {limit} times",
    "lower its repetitions",
)
"""Elements of a pattern with its fixed repetitions expanded: `regex` needs some 700 bytes for each."""

MAX_DRAFT_CHARS = 2_000
"""A request that a model drafts. Longer ones are answers to another question."""

MAX_DRAFTS = 20
"""Drafted requests for one tool. The model is asked for four."""

# The terminal and what is typed into it.

MAX_PASTE_CHARS = 1 << 24
"""A paste. The rest of a longer one is dropped: a terminal can send without end."""

MAX_FIELD_CHARS = Limit(60_000, "{length} are too many for this field", "shorten it, or write it in your editor (F4)")
"""A text that a field holds, typed or pasted: each key costs time in proportion to it."""

MAX_FILTER_CHARS = 200
"""The text of a filter or search. A pasted file is cut."""

MAX_CLIPBOARD_BYTES = 74_000
"""A text copied through the terminal (OSC 52). Many terminals drop longer ones."""

MAX_TERMINAL_COLUMNS, MAX_TERMINAL_ROWS = 1_000, 500
"""The size of a terminal. Each cell is stored, so an absurd size must not be accepted."""

MAX_MOUSE_COORDINATE = 32_767
"""A coordinate of a mouse, which may be in pixels."""

MAX_SEQUENCE_CHARS = 256
"""A control sequence of a terminal. The rest of a longer one is dropped."""

MAX_SERVED_PACKET_BYTES = 1 << 24
"""One packet of the web server to its app: a paste with its frame."""

# Checks.

MAX_COMPARED_PAIRS = Limit(
    1_000_000,
    "the list needs more than {limit} comparisons of elements with checks",
    "expect plain values, or `in_order`",
)
"""Comparisons in one verdict on the elements of a list: about two seconds, for a thousand checks in any order of a
thousand elements. Plain values are found without any."""
