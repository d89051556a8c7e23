"""Regular expressions: searches with a time limit, ambiguous repetitions, and construction of matching texts."""

from __future__ import annotations

import re
import string
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.limits import MAX_PATTERN_ITEMS
from workbench.numerals import count_text, seconds_text
from workbench.startup import late_pattern

if TYPE_CHECKING:
    import regex

# The analysis of patterns: ambiguous repetitions and the compiled size. It uses the syntax tree of Python's own parser.

# Python has no documented access to the tree.
_parse = import_module("re._parser").parse

_MAX_POSITIONS = 40
"""The most positions analysed in a repetition. The cost grows with the square of this number."""

_MANY_TIMES = 10
"""A repetition with this maximum count or more is treated as endless."""

_SAMPLE = frozenset(map(chr, range(256))) | frozenset("ΩяДا中٣‍’ 😀")
"""The characters used to compare sets. Two sets overlap if they share one of these characters."""

_REPEATED_CHOICE = late_pattern(r"\((?:\?:|\?P<\w+>)?((?:\\.|[^\\()|])+(?:\|(?:\\.|[^\\()|])+)+)\)(?:[*+]|\{\d*,\})")
r"""Matches a repeated choice such as `(\w|\d)+`. The parser would merge its single characters into one set."""

_CLASSES = {
    "DIGIT": late_pattern(r"\d"),
    "SPACE": late_pattern(r"\s"),
    "WORD": late_pattern(r"\w"),
}


@lru_cache(maxsize=256)
def repeats_ambiguously(pattern: str) -> bool:
    """Return whether a pattern repeats a part that fits the same text in several ways, like `(a+)+`.

    Each further character may then double the number of ways that a search tries. Returns False for an invalid pattern,
    and for a pattern that is too long to analyse."""
    try:
        tree = _parse(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    trees, ignore_case = [tree], bool(tree.state.flags & re.IGNORECASE)
    try:
        while trees:
            for loop in _loops(trees.pop()):
                if _Automaton(loop, ignore_case, trees).ambiguous():
                    return True
    except (_TooLongError, RecursionError):
        return False
    return any(_overlap(found[1].split("|")) for found in _REPEATED_CHOICE.finditer(pattern))


def expanded_size(pattern: str) -> int:
    """Return the number of elements of a pattern with its fixed repetitions expanded: `(ab){3}` has 6."""
    return _size(_parse(pattern))


def _size(tree: Iterable[Any]) -> int:
    size = 0
    for operation, argument in tree:
        inner = max(sum(map(_size, _parts(operation, argument))), 1)
        times = max(argument[0], 1) if "REPEAT" in str(operation) else 1
        size += inner * times
    return size


def _parts(operation: object, argument: Any) -> list[Any]:
    match str(operation):
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return [argument[2]]
        case "SUBPATTERN":
            return [argument[3]]
        case "BRANCH":
            return list(argument[1])
        case "ATOMIC_GROUP":
            return [argument]
        case "ASSERT" | "ASSERT_NOT":
            return [argument[1]]
        case "GROUPREF_EXISTS":
            return [part for part in argument[1:] if part is not None]
    return []


def _loops(tree: Iterable[Any]) -> Iterator[tuple[object, Any]]:
    for element in tree:
        operation, argument = element
        if str(operation) in ("MAX_REPEAT", "MIN_REPEAT") and argument[1] >= _MANY_TIMES:
            yield element
        else:
            for part in _parts(operation, argument):
                yield from _loops(part)


def _overlap(alternatives: list[str]) -> bool:
    seen: set[str] = set()
    for alternative in alternatives:
        try:
            single = re.compile(f"(?:{alternative})\\Z")
        except re.error:
            return False
        fitting = set(filter(single.match, _SAMPLE))
        if seen & fitting:
            return True
        seen |= fitting
    return False


class _TooLongError(Exception):
    """The pattern has more positions than the analysis allows."""


class _Part(NamedTuple):
    """A part of a pattern: its possible first and last positions. `empty` is true if it also fits the empty text."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    empty: bool


_NOTHING = _Part((), (), True)


class _Automaton:
    """The position automaton of a repetition (Glushkov 1961): its characters and their successors.

    Successors are counted by the number of ways to reach them. The repetition is exponentially ambiguous if two
    different walks over the same text lead from a position back to it (Weber and Seidl 1991). Assertions, atomic groups
    and references are not analysed here. Each counts as a separate character, and the patterns inside them go to
    `apart`, to be analysed separately."""

    def __init__(self, loop: tuple[object, Any], ignore_case: bool, apart: list[Any]) -> None:
        self._characters: list[frozenset[str]] = []
        self._ways: Counter[tuple[int, int]] = Counter()
        self._ignore_case = ignore_case
        self._apart = apart
        self._same_twice = False
        """Whether two alternatives are equal. The parser then moves all of their parts out, so nothing is left of
        them."""
        self._element(*loop)
        self._after: list[list[int]] = [[] for _ in self._characters]
        for before, after in self._ways:
            self._after[before].append(after)

    def ambiguous(self) -> bool:
        if self._same_twice:
            return True
        for (before, after), ways in self._ways.items():
            if ways > 1 and self._leads_back(after, before):
                return True
        return any(self._forks_and_joins(position) for position in range(len(self._characters)))

    def _leads_back(self, start: int, goal: int) -> bool:
        seen, todo = {start}, [start]
        while todo:
            new = set(self._after[todo.pop()]) - seen
            seen |= new
            todo += new
        return goal in seen

    def _forks_and_joins(self, position: int) -> bool:
        """Return whether two different walks over the same text lead from a position back to it."""
        # Pairs of positions are walked together: forward from the start, keeping the predecessors of each pair, then
        # backward. If both directions reach a pair of different positions, the pair lies on two different walks.
        start = (position, position)
        before: dict[tuple[int, int], list[tuple[int, int]]] = {start: []}
        todo = [start]
        while todo:
            pair = todo.pop()
            for one in self._after[pair[0]]:
                for other in self._after[pair[1]]:
                    if self._characters[one] & self._characters[other]:
                        if (one, other) not in before:
                            before[one, other] = []
                            todo.append((one, other))
                        before[one, other].append(pair)
        met, todo = {start}, [start]
        while todo:
            new = set(before[todo.pop()]) - met
            met |= new
            todo += new
        return any(one != other for one, other in met)

    def _sequence(self, tree: Iterable[Any]) -> _Part:
        whole = _NOTHING
        for operation, argument in tree:
            whole = self._joined(whole, self._element(operation, argument))
        return whole

    def _joined(self, one: _Part, other: _Part) -> _Part:
        self._follow(one.last, other.first)
        first, last = one.first, other.last
        if one.empty:
            first += other.first
        if other.empty:
            last += one.last
        return _Part(first, last, one.empty and other.empty)

    def _follow(self, last: Iterable[int], first: Iterable[int]) -> None:
        first = tuple(first)
        self._ways.update((before, after) for before in last for after in first)

    def _element(self, operation: object, argument: Any) -> _Part:
        match str(operation):
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
                return self._position(self._fitting(str(operation), argument))
            case "SUBPATTERN":
                return self._sequence(argument[3])
            case "BRANCH":
                parts = [self._sequence(part) for part in argument[1]]
                self._same_twice |= sum(part == _NOTHING for part in parts) > 1
                return self._either(parts)
            case "GROUPREF_EXISTS":
                # A missing second branch fits the empty text.
                return self._either([self._sequence(part or ()) for part in argument[1:]])
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self._repeated(*argument)
        self._apart += _parts(operation, argument)
        return self._position(frozenset((f"#{len(self._characters)}",)))

    def _either(self, parts: list[_Part]) -> _Part:
        first = tuple(chain.from_iterable(part.first for part in parts))
        last = tuple(chain.from_iterable(part.last for part in parts))
        return _Part(first, last, any(part.empty for part in parts))

    def _repeated(self, least: int, most: int, tree: Any) -> _Part:
        if most == 0:
            return _NOTHING
        # Counts are simplified: a fixed number counts as one, a small range as one or two. The full counts would exceed
        # the limit on analysed positions.
        part = self._sequence(tree)
        if most >= _MANY_TIMES and most != least:
            self._follow(part.last, part.first)
        elif 1 < most != least:
            again = self._sequence(tree)
            part = self._joined(part, again._replace(empty=True))
        if least == 0:
            return part._replace(empty=True)
        return part

    def _position(self, characters: frozenset[str]) -> _Part:
        if len(self._characters) == _MAX_POSITIONS:
            raise _TooLongError
        self._characters.append(characters)
        here = (len(self._characters) - 1,)
        return _Part(here, here, False)

    def _fitting(self, kind: str, argument: Any) -> frozenset[str]:
        found: AbstractSet[str]
        match kind:
            case "LITERAL":
                found = {chr(argument)}
            case "NOT_LITERAL":
                found = _SAMPLE - {chr(argument)}
            case "ANY":
                found = _SAMPLE - {"\n"}
            case _:
                found = set()
                for item in argument:
                    found.update(_in_set(*item))
                if str(argument[0][0]) == "NEGATE":
                    found = _SAMPLE - found
        if self._ignore_case:
            found = {*found, *map(str.lower, found), *map(str.upper, found)}
        return frozenset(found)


def _in_set(kind: object, argument: Any) -> Iterable[str]:
    match str(kind):
        case "LITERAL":
            return (chr(argument),)
        case "RANGE":
            low, high = argument
            return [*(each for each in _SAMPLE if low <= ord(each) <= high), chr(low), chr(high)]
        case "CATEGORY":
            name = str(argument).removeprefix("CATEGORY_")
            fits = _CLASSES[name.removeprefix("NOT_")]
            return [each for each in _SAMPLE if bool(fits.match(each)) != name.startswith("NOT_")]
    return ()


# Searches with a time limit. Patterns are written for Python's `re`, but its searches cannot be interrupted. Therefore,
# the package `regex` searches. docs/checks.md lists the differences.

SEARCH_LIMIT_S = 0.5
"""The processor time in seconds for all searches of one check in a run."""

_QUICK_S = 0.02
"""The time in seconds within which most searches end.

The search keeps the interpreter lock for this time because releasing the lock costs more than a short search."""

_QUICK_CHARACTERS = 100_000
"""The length limit of a text that is searched while keeping the lock. In a longer text, `regex` notices the timeout
late."""

_MAX_SHOWN_CHARS = 80
_KEPT_PATTERNS = 512
"""The most compiled patterns in the cache."""

_TOKEN = r"""
      \\[NpP]\{[^{}\\]*\} | \\.                     # an escape
    | \(\?\#[^)]*\)                                 # a comment
    | \[ \^? \]? (?: \\. | [^\]\\] )* \]            # a set
    | \{ (?: \d+ (?: , \d* )? | , \d* ) \}          # a repetition
    | \{
"""
_TOKENS = late_pattern(_TOKEN, re.VERBOSE | re.DOTALL)
_TOKENS_OF_VERBOSE = late_pattern(rf"\#[^\n]* | {_TOKEN}", re.VERBOSE | re.DOTALL)
_VERBOSE = late_pattern(r"\(\?[a-z]*x")
_UNKNOWN_TO_RE = late_pattern(r"\\[pP]\{[^{}\\]*\} | \(\?<(?![=!])\w+> | \\.", re.VERBOSE | re.DOTALL)
_MULTILINE = late_pattern(r"\(\?[a-z]*m")
_OF_JAVASCRIPT = late_pattern(r"\\. | \[ \^? \]? (?: \\. | [^\]\\] )* \] | \$", re.VERBOSE | re.DOTALL)
_ESCAPES = late_pattern(r"\\.", re.DOTALL)
_DIGITS = {"$": r"\Z", r"\d": r"\p{posix_digit}", r"\D": r"\P{posix_digit}"}

SpentTime = dict[str, float]
"""The processor time of the searches for each pattern, in seconds."""


class CheckError(Exception):
    """A check could not be evaluated: its Python function raised an error, or a judge or function is missing.

    The fault is not the model's, so the run gets the status `error`. The message names the check."""


class SearchError(CheckError):
    """A text could not be searched. The message names the pattern and the text's length."""


def search_pattern(pattern: str, text: str, spent: SpentTime | None = None, *, is_of_schema: bool = False) -> bool:
    """Return whether a pattern is found in a text. `spent` has the time of earlier searches, which counts too.

    With `is_of_schema`, `$` and the classes of digits mean the same as in JavaScript.

    Raises SearchError if the time runs out, or if the pattern cannot be used."""
    if spent is None:
        spent = {}
    left_s = SEARCH_LIMIT_S - spent.get(pattern, 0.0)
    if left_s <= 0:
        raise _ran_out(pattern, text)
    prepared = _prepared(pattern, is_of_schema)
    timeout_s, concurrent = left_s, True
    if len(text) <= _QUICK_CHARACTERS:
        timeout_s, concurrent = _QUICK_S, False
    while True:
        began_s = time.thread_time()
        try:
            return prepared.search(text, timeout=timeout_s, concurrent=concurrent) is not None
        except TimeoutError:
            pass
        except MemoryError:
            raise SearchError(f"{_place(pattern, text)} needs too much memory") from None
        finally:
            took_s = time.thread_time() - began_s
            spent[pattern] = spent.get(pattern, 0.0) + took_s
        if took_s >= left_s * 0.9:
            raise _ran_out(pattern, text)
        # `regex` counts the processor time of all threads, so other threads may have used up this timeout. Further
        # tries keep the interpreter lock (`concurrent=False`), so other threads hardly run. They double the timeout
        # until this thread has had its full time.
        if timeout_s < left_s:
            timeout_s, concurrent = left_s, True
        else:
            timeout_s, concurrent = timeout_s * 2, False


@lru_cache(maxsize=_KEPT_PATTERNS)
def _prepared(pattern: str, is_of_schema: bool) -> regex.Pattern[str]:
    import regex

    try:
        compiled = _compiled(pattern, is_of_schema=is_of_schema)
    except (re.error, regex.error, OverflowError, RecursionError) as error:
        raise SearchError(f"the pattern {_shown(pattern)} cannot be used: {error}") from None
    if compiled is None:
        raise SearchError(MAX_PATTERN_ITEMS.reached(pattern=_shown(pattern)))
    return compiled


def is_usable_pattern(pattern: str) -> bool:
    """Return whether `search_pattern` can use a pattern of a schema. A pattern that is too large counts as usable."""
    import regex

    try:
        _compiled(pattern, is_of_schema=True)
    except (re.error, regex.error, OverflowError, RecursionError):
        return False
    return True


def _compiled(pattern: str, *, is_of_schema: bool) -> regex.Pattern[str] | None:
    """Compile a pattern. Return `None` if it is too large: compiling it might take all memory."""
    import regex

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        if expanded_size(_in_syntax_of_re(pattern)) > MAX_PATTERN_ITEMS:
            return None
        # An invalid pattern is refused above. Translating it might take quadratic time.
        syntax = regex_syntax(pattern)
        if is_of_schema:
            syntax = _in_meaning_of_javascript(syntax)
        return regex.compile(syntax, flags=regex.VERSION0, cache_pattern=False)


def _in_syntax_of_re(pattern: str) -> str:
    r"""Replace what JavaScript and `regex` know, but not `re`, by parts of the same size: `\p{L}`, `(?<name>…)`."""
    return _UNKNOWN_TO_RE.sub(lambda part: _known_to_re(part[0]), pattern)


def _known_to_re(part: str) -> str:
    if part.startswith("("):
        return "(?:"
    return r"\w" if len(part) > 2 else part


def regex_syntax(pattern: str) -> str:
    """Translate a pattern of Python's `re` to the syntax of the package `regex`.

    For example, `regex` would read `{e}` as a fuzzy match, and `[[:alpha:]]` as a class of characters."""
    tokens = _TOKENS_OF_VERBOSE if _VERBOSE.search(pattern) else _TOKENS
    return tokens.sub(lambda token: _escaped(token[0]), pattern)


def _in_meaning_of_javascript(syntax: str) -> str:
    """Replace the parts that `regex` reads otherwise than JavaScript.

    In `regex`, `$` also matches before a line break at the end, and `\\d` matches the digits of all scripts."""
    has_lines = _MULTILINE.search(syntax) is not None
    return _OF_JAVASCRIPT.sub(lambda part: _of_javascript(part[0], has_lines), syntax)


def _of_javascript(part: str, has_lines: bool) -> str:
    if part.startswith("["):
        return _ESCAPES.sub(lambda escape: _DIGITS.get(escape[0], escape[0]), part)
    if part == "$" and has_lines:
        return part
    return _DIGITS.get(part, part)


def _escaped(token: str) -> str:
    if token == "{":
        return r"\{"
    if token.startswith("["):
        return "[" + re.sub(r"\\.|\[", lambda part: r"\[" if part[0] == "[" else part[0], token[1:], flags=re.DOTALL)
    return token


def _ran_out(pattern: str, text: str) -> SearchError:
    return SearchError(
        f"{_place(pattern, text)} did not end within {seconds_text(SEARCH_LIMIT_S)}; simplify the pattern"
    )


def _place(pattern: str, text: str) -> str:
    return f"the search for the pattern {_shown(pattern)} in a text of {count_text(len(text))} characters"


def _shown(pattern: str) -> str:
    if len(pattern) > _MAX_SHOWN_CHARS:
        pattern = pattern[: _MAX_SHOWN_CHARS - 1] + "…"
    return repr(pattern)


# Construction of a matching text from the syntax tree of a pattern.

_ALPHABET = string.ascii_letters + string.digits + "-_ .,:/@#+\n\té中"
"""The candidate characters for a set, the plainest first."""

_MAX_CHARS = 10_000
"""The length limit of a constructed text."""


@lru_cache(maxsize=256)
def matching_text(pattern: str) -> str | None:
    """Return a short text in which a pattern is found, or `None` if no text can be constructed.

    No text can be constructed for most patterns that look ahead, or for a pattern whose search takes too long."""
    try:
        if expanded_size(pattern) > _MAX_CHARS:
            return None
        text = _text(_parse(pattern), {})
        return text if search_pattern(pattern, text) else None
    except (_UnknownTextError, SearchError, re.error, OverflowError, RecursionError):
        return None


class _UnknownTextError(Exception):
    """No text can be constructed for an element of a pattern."""


def _text(tree: Iterable[Any], groups: dict[int, str]) -> str:
    return "".join(_of_element(str(operation), argument, groups) for operation, argument in tree)


def _of_element(operation: str, argument: Any, groups: dict[int, str]) -> str:
    match operation:
        case "LITERAL":
            return chr(argument)
        case "NOT_LITERAL":
            return next(character for character in _ALPHABET if ord(character) != argument)
        case "ANY":
            return "a"
        case "IN":
            return _of_set(argument)
        case "CATEGORY":
            return _of_set([(operation, argument)])
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            # An optional part is written once because a reference to an unused group cannot match.
            least, most, part = argument
            times: int = min(max(least, 1), most, _MAX_CHARS)
            return _text(part, groups) * times
        case "SUBPATTERN":
            number, _, _, part = argument
            groups[number] = text = _text(part, groups)
            return text
        case "ATOMIC_GROUP":
            return _text(argument, groups)
        case "BRANCH":
            return _text(argument[1][0], groups)
        case "GROUPREF":
            return groups.get(argument, "")
        case "AT" | "ASSERT" | "ASSERT_NOT":
            # `matching_text` finally searches the whole text and so checks the assertion.
            return ""
        case _:
            raise _UnknownTextError


def _of_set(members: list[tuple[Any, Any]]) -> str:
    negated = any(str(operation) == "NEGATE" for operation, _ in members)
    candidates = "".join(_listed_character(str(operation), argument) for operation, argument in members)
    if negated or not candidates:
        candidates = _ALPHABET
    for character in candidates:
        if any(_is_in(character, str(operation), argument) for operation, argument in members) is not negated:
            return character
    raise _UnknownTextError


def _listed_character(operation: str, argument: Any) -> str:
    if operation == "LITERAL":
        return chr(argument)
    if operation == "RANGE":
        return chr(argument[0])
    return ""


def _is_in(character: str, operation: str, argument: Any) -> bool:
    match operation:
        case "LITERAL":
            return bool(ord(character) == argument)
        case "RANGE":
            return bool(argument[0] <= ord(character) <= argument[1])
        case "CATEGORY":
            name = str(argument)
            holds = _CLASSES[name.rsplit("_", 1)[-1]].match(character) is not None
            return holds is not ("_NOT_" in name)
        case _:
            return False
