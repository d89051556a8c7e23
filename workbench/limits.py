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

    def __new__(cls, number: int, problem: str, advice: str = "") -> Limit:
        limit = super().__new__(cls, number)
        limit.happened, limit.way_out = problem, advice
        return limit

    def __reduce__(self) -> tuple[type[Limit], tuple[int, str, str]]:
        return Limit, (int(self), self.happened, self.way_out)

    def reached(self, **values: object) -> str:
        """Return the message for a value above the limit. `values` has the values for other names in the message."""
        words = self.happened
        if self.way_out:
            words += f": {self.way_out}"
        return self._filled(words, values)

    def exceeded(self, **values: object) -> str:
        """Return the message without the advice, for a caller that shows the advice elsewhere."""
        return self._filled(self.happened, values)

    def _filled(self, template: str, values: Mapping[str, object]) -> str:
        # This import is lazy, because every command imports the limits, and few reach one.
        from workbench.numerals import count_text, setting_text

        return template.format(limit=count_text(self), mib=f"{setting_text(self / 2**20)} MiB", **values)


# Batches and clusters.

MAX_REPEATS = Limit(1_000, "must be a whole number from 1 to {limit}, not {given}")
"""The largest number of runs of a case in one batch. A thousand runs distinguish pass rates three percentage points
apart."""

MAX_DEMANDED_CALLS = Limit(1_000, "must demand at most {limit} calls", "write a lower number")
"""The largest number of calls that `times` of one expected call may demand. Graders treat each of them as a separate
expectation."""

MAX_LOOKS = 10
"""The largest number of times that an early-stopping batch evaluates its runs. The table of critical values ends
there."""

MAX_CLUSTER_WORKERS = Limit(512, "a local cluster has 1 to {limit} workers, as in local:8, not {given}")
"""The largest number of worker processes on one machine. Larger machines are rare, and a typing error must not start
thousands of processes."""

MAX_PLANNED_RUNS = 10_000_000
"""The largest number of runs in a stored plan. Reading a plan allocates memory for each run, so a damaged file could
otherwise fill the memory."""

MAX_VIEWERS = Limit(100, "{limit} viewers are attached already", "detach one")
"""The largest number of terminals attached to one batch. For each, the batch's process has a socket and a queue."""

MAX_SOCKET_PATH_BYTES = 100
"""The longest path of a batch's socket. macOS and the BSDs allow 104 bytes, Linux 108, including the final zero."""

MAX_VIEWER_LINE_BYTES = 1 << 16
"""The longest line that a viewer may send. Viewers send only short commands."""

MAX_VIEWER_BACKLOG_BYTES = 4 << 20
"""The largest number of unsent bytes for a viewer before it is disconnected. A single line may be longer."""

MAX_PIPED_BYTES = 1 << 26
"""The longest line from a batch or an MCP server, and the largest packet of the app in a browser. The largest run fits
into such a line, and such a line fits into memory."""

MAX_DOCUMENT_RUNS = Limit(
    200_000, "a report as {form} is one document, which has room for {limit} runs, and not for {runs:,}", "{instead}"
)
"""The largest number of runs in a report that is a single document. A program that reads such a report needs all of it
in memory."""

# The size of one answer of a model. No suite needs more, and few models could send more. `docs/models.md` lists these
# limits.

_TOO_MUCH = "the model sent too much: more than {limit} "

MAX_ANSWER_CHARS = Limit(2 << 20, _TOO_MUCH + "characters in one answer")
"""The most characters of text, reasoning and arguments together. They are some 500,000 tokens."""

MAX_ANSWER_CALLS = Limit(1_000, _TOO_MUCH + "calls in one answer")
"""The most calls in one answer. Models make at most tens of calls in parallel."""

MAX_ANSWER_PARTS = Limit(10_000, _TOO_MUCH + "parts in one answer")
"""The most parts of one answer (blocks, items or details of reasoning). They stay in memory until the answer ends."""

CUT_OFF_REMEDY = "raise `max_tokens`, or shorten the conversation if it fills the model's context"
"""What to do about an answer that ended at the limit on output tokens."""

MAX_PAUSES = Limit(
    20, "the provider paused one answer more than {limit} times", "let its tools do less, as with max_uses"
)
"""The most continuations of one answer. A provider pauses an answer while its own tools work, and makes up to ten calls
in each continuation."""

MAX_CALL_ARGUMENTS = Limit(1_000, _TOO_MUCH + "arguments of a call in one answer")
"""The most named arguments of one call. Tools declare at most some hundred."""

MAX_ANSWER_VALUES = Limit(100_000, _TOO_MUCH + "values in the arguments of calls in one answer")
"""The most values in the arguments of all calls of an answer, at any depth."""


def oversized_answer_message(limit: int) -> str:
    """Return the message for a model whose answer takes more bytes than the limit."""
    return f"the model sent too much: more than {limit >> 20} MiB in one answer"


# Data that endpoints and servers send.

MAX_BODY_BYTES = Limit(256 << 20, "a request of more than {mib} is not forwarded", "shorten the conversation")
"""The largest request that is forwarded, and the most bytes that an endpoint may send for one answer. These include the
protocol's own bytes, which may take a hundred times as much as the text if each chunk has a single token."""

MAX_MESSAGE_BYTES = Limit(32 << 20, "sent more than {mib} as {what}", "let the tool answer with less")
"""The largest message of an MCP server, event of a stream, or answer in a single document. For legacy SSE, the MCP SDK
has a limit of 1 MiB."""

MAX_ERROR_BYTES = 64 << 10
"""The most bytes that are read of an error, of a web page that arrives instead of an answer, and of a failed program's
output. The reason for the failure is near the beginning, or at the end of a traceback."""

MAX_KEY_BYTES = Limit(16 << 10, "more than {limit} bytes", "it must print the key alone")
"""The longest key that a command may print. The longest tokens have some 8 KiB."""

MAX_LOGIN_BYTES = Limit(1 << 20, "answers with more than {mib}", "correct the url of the server")
"""The largest answer of an authorization server. Tokens and metadata have some kilobytes."""

MAX_HEADER_BYTES = 64 << 10
"""The longest line in the head of a response. Gateways put long policies into headers, and servers accept 8 to 32
KiB."""

MAX_LISTING_BYTES = Limit(16 << 20, "sends more than {mib} as its list of models", "correct base_url")
"""The largest body of a response that is not a model's answer. A list of ten thousand models has a tenth of this
size."""

MAX_HOLD_SECONDS = 60.0
"""The longest pause that an endpoint may impose on all runs of a model. Rate limits usually count requests per
minute."""

MAX_UNPACKED_BYTES = Limit(64 << 20, "unpacks to more than {mib}", "send it without compression")
"""The most bytes to which one chunk may be decompressed. A megabyte of zlib can expand to a gigabyte."""

MAX_LISTING_PAGES = Limit(100, "continues after {limit} pages", "let it list more tools on a page")
"""The most pages in a server's list of tools. A server that repeats its cursor would never end the list."""

MAX_CALL_SECONDS = Limit(
    3_600, "still reported progress after {limit} s and was cancelled", "let the tool do less in one call"
)
"""The longest duration of a call whose progress notices extend its time limit. Without this limit, a server could keep
a call open for ever."""

MAX_CALL_QUESTIONS = Limit(
    100, "sent more than {limit} requests during {what}", "answer the server so that it does not ask again"
)
"""The most requests that a server may send during one call. Without this limit, a server could repeat a request for
ever."""

MAX_SERVED_RUNS = 16
"""The most runs that have servers with `state = "run"` at the same time. Other runs wait. Each server takes 70 to 80
MB."""

MAX_FAILED_STARTS = Limit(
    3,
    "server {server!r} failed to start {limit} times in a row, and is not started again in this batch ({error})",
    "run the rest of the batch when it starts",
)
"""The number of failed starts in a row after which a server with `state = "run"` is not started again. Each attempt may
take as long as the time limit of a start."""

MAX_INSTRUCTIONS_BYTES = Limit(
    2_048, "has {size:,} bytes of instructions, of which the first {limit} are sent", "shorten them"
)
"""The most bytes of a server's instructions that are put into the system prompt. Claude Code cuts them at this
length."""

MAX_MEDIA_BYTES = Limit(20 << 20, "is larger than {mib}", "make it smaller")
"""The largest image or sound. OpenAI accepts images of 20 MB, and Anthropic accepts requests of 32 MB."""

MAX_ROWS_BYTES = Limit(32 << 20, "is larger than {mib}", "split it among several cases")
"""The largest file with the rows of a case. Few rows are longer than a kilobyte."""

MAX_ROWS = Limit(20_000, "has more than {limit} rows", "split them among several cases")
"""The most rows of one case. Each row becomes a separate case, and ten thousand of these take 100 MB of memory."""

MAX_CELL_CHARS = Limit(
    131_072,
    "has a cell of more than {limit} characters",
    "close every quotation mark, or write long texts as JSON Lines (.jsonl)",
)
"""The longest cell of a CSV file, which is the limit of Python's reader. If a quotation mark is not closed, all
following text becomes one cell."""

MAX_RUN_MEDIA_BYTES = Limit(50 << 20, "the images and sounds of this run exceed {mib}", "let tools send fewer")
"""The most bytes of all images and sounds of one run. Each request sends them again, and OpenAI accepts 50 MB in a
request."""

MAX_KEPT_MEDIA_BYTES = Limit(
    4 << 20, "the history and recordings keep {mib} of images and sounds of a run", "run the case again"
)
"""The most bytes of tools' images and sounds that are stored with the events of a run. A batch may store a thousand
such runs."""

MAX_PROGRESS_CHARS = 200
"""The most characters of a progress notice that are stored. The notice is shown on one line."""

MAX_SERVER_ERROR_CHARS = 1_000
"""The most characters of a server's error text that are stored. A server may send megabytes."""

MAX_OFFERED_TOOLS = Limit(
    128, "{offered} tools are offered at once; OpenAI refuses more than {limit}", 'let cases offer fewer: offer = ["…"]'
)
"""The most tools in one request, according to OpenAI's API reference."""

MAX_TOOL_NAME_CHARS = 64
"""The longest name of a tool in a request. OpenAI and Anthropic refuse longer names."""

MAX_COLLECTOR_REQUEST_BYTES = 4 << 20
"""The largest request to a collector of traces. By default, collectors accept about 20 MiB."""

MAX_COLLECTOR_ANSWER_BYTES = 1 << 20
"""The largest answer of a collector, which lists the rejected items."""

MAX_OUTPUT_BYTES = Limit(
    16 << 20, "{who} wrote more than {mib} to standard output and was ended", "print only the JSON of the run"
)
"""The most bytes that a suite's own program may write to standard output. Such a program writes one run as JSON."""

MAX_AGENT_ITEMS = Limit(200_000, "the model sent too much: more than {limit} messages of its agent in one run")
"""The most messages of one agent in one run. Each piece of text is a message, and an answer has some thousand
pieces."""

MAX_AGENT_LINES = 200
"""The most notes of an agent in one run that are stored. Notes are, for example, plans, and lines that are not
messages."""

MAX_STRAY_LINES = 200
"""The most lines of a server's standard output that are logged although they are not messages. Otherwise, a server that
writes its log there would fill the file."""

MAX_STRAY_LINE_CHARS = 2_000
"""The most characters that are logged of a line of a server's standard output."""

MAX_RATIONALE_CHARS = 1_000
"""The most characters of a judge's reason that are stored. Judges are asked for one sentence, which is shown beside the
check."""

MAX_PROVIDER_RESULT_CHARS = 4_000
"""The most characters that are shown of the result of a provider's own tool. The whole result is sent back to the
provider."""

MAX_JSON_LEVELS = Limit(100, "nested more than {limit} levels deep", "flatten it")
"""The most levels of nesting in a call's arguments or an imported value. Real tools need a handful. The parsers of JSON
and pydantic fail at some hundred levels."""

MAX_MILLISECONDS = 1e12
"""The longest duration that is accepted from another system, in milliseconds. It is 31 years, which dates can still
represent."""

MAX_TOKENS = 10**15
"""The largest token count that is accepted from another system. SQLite and protobuf have 64 bits for sums of token
counts."""

MAX_SCHEMA_PARAMETERS = 2_000
"""The most parameters of one tool that are analysed. With references, a short schema can have endlessly many."""

# Files.

MAX_FILE_BYTES = Limit(256 << 20, "is larger than {mib}", "split it")
"""The largest file, and the most bytes that are unpacked from an archive. As text, each byte may take four bytes of
memory."""

MAX_FILE_VALUES = Limit(5_000_000, "holds more than {limit} values", "split it")
"""The most values in one file. Aliases in YAML can expand a small file to many values. In JSON, a value of three bytes
takes seventy bytes of memory."""

MAX_YAML_BYTES = Limit(4 << 20, "is YAML of more than {mib}", "write it as JSON")
"""The largest YAML file. The parser needs several hundred bytes of memory for each value, until it has read all
values."""

MAX_YAML_NUMBER_CHARS = Limit(1_000, "a number has more than {limit} characters", "quote it")
"""The most characters of a number in YAML. YAML allows numbers in base 60, and reading these takes quadratic time."""

MAX_INCLUDED_FILES = 5
"""The most levels of files that name other files in promptfoo. Two levels are usual. If files name each other in a
circle, there is no last level."""

MAX_TEST_CASES = Limit(64, "stands for {count:,} cases, more than {limit}", "list fewer values of its variables")
"""The most cases that one test of promptfoo may have: one for each prompt and combination of its variables' values."""

MAX_ACCEPTED_VALUES = Limit(64, "has {count:,} accepted values, more than {limit}", "leave the row out")
"""The most accepted values of one argument of BFCL. Alternatives inside a value are written out as whole values, so
their numbers multiply."""

MAX_STORED_TEXT_BYTES = Limit(64 << 20, "a text is longer than {mib}", "shorten what the tools answer")
"""The longest text that the history stores and reads. It is a thousand times as long as the events of a long run."""

MAX_STATE_FILE_BYTES = 4 << 20
"""The largest file with breakpoints or with the app's state. This program writes no larger file."""

MAX_CLIENT_FILE_BYTES = 20_000_000
"""The largest file of another client that is searched for servers. Some clients store their history in the same
file."""

MAX_RECORDING_HEAD_BYTES = 1 << 24
"""The longest first line that is read to find out whether a file is a recording. In a recording, it contains the
suite."""

MAX_PATTERN_ITEMS = Limit(
    100_000,
    "the pattern {pattern} cannot be searched for: it repeats its parts more than {limit} times",
    "lower its repetitions",
)
"""The most elements of a pattern whose repetitions are written out. The package `regex` needs some 700 bytes for each
element."""

MAX_DRAFT_CHARS = 2_000
"""The longest request that a model may draft. A longer text is not a draft, but an answer to another question."""

MAX_DRAFTS = 20
"""The most drafted requests for one tool. The model is asked for four."""

# The terminal and what is typed into it.

MAX_PASTE_CHARS = 1 << 24
"""The most characters of a paste. The rest is dropped, because a terminal can send text without end."""

MAX_FIELD_CHARS = Limit(60_000, "{length} are too many for this field", "shorten it, or write it in your editor (F4)")
"""The most characters that a field holds, typed or pasted. The time for handling each key grows with this number."""

MAX_FILTER_CHARS = 200
"""The most characters of a filter or a search. A pasted text may be longer, and is cut."""

MAX_CLIPBOARD_BYTES = 74_000
"""The largest text that is copied through the terminal (OSC 52). Many terminals drop longer texts."""

MAX_TERMINAL_COLUMNS, MAX_TERMINAL_ROWS = 1_000, 500
"""The largest accepted size of a terminal. Each cell takes memory, so an absurd size must not be accepted."""

MAX_MOUSE_COORDINATE = 32_767
"""The largest coordinate of the mouse, which may be in pixels."""

MAX_SEQUENCE_CHARS = 256
"""The longest control sequence of a terminal. The rest of a longer sequence is dropped."""

MAX_SERVED_PACKET_BYTES = 1 << 24
"""The largest packet that the web server sends to its app. Such a packet has a paste and its frame."""

# Checks.

MAX_COMPARED_PAIRS = Limit(
    1_000_000,
    "the list needs more than {limit} comparisons of elements with checks",
    "expect plain values, or `in_order`",
)
"""The most comparisons for one verdict on the elements of a list. They take about two seconds, and suffice for a
thousand checks on a thousand elements in any order. Plain values need no comparisons."""
