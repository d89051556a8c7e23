"""Format numbers for users: rates, scores, durations, costs, counts, times.

Every surface uses these functions, so a number looks the same everywhere. Reports in JSON keep unrounded numbers."""

from __future__ import annotations

import math
from datetime import datetime
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from functools import lru_cache

NOTHING = "–"
"""The text in place of a missing number."""

# Further digits are binary rounding errors: 0.1 + 0.2 must count as 0.3 before it is rounded.
_TEXT_DIGITS = 12

_LONG = 1e12
"""The least number that is formatted without decimal rounding."""


def decimals(value: float, digits: int = 2, *, full: float = 1.0) -> str:
    """Return a number with `digits` decimals. A half is rounded up: 0.625 is `0.63`.

    A number below `full` is never rounded up to `full`: 0.9999 is `0.99`, because it did not reach 1."""
    if not math.isfinite(value) or abs(value) >= _LONG:
        return f"{value:.{digits}f}"
    return _decimals(f"{value:.{_TEXT_DIGITS}g}", digits, full)


@lru_cache(maxsize=1024)
def _decimals(number: str, digits: int, full: float) -> str:
    exact, unit = Decimal(number), Decimal(1).scaleb(-digits)
    rounded = exact.quantize(unit, ROUND_HALF_UP)
    if exact < full <= rounded:
        rounded = exact.quantize(unit, ROUND_DOWN)
    return str(rounded)


def count_text(number: float) -> str:
    """Return a number, rounded to a whole number, with commas: `950`, `12,000`."""
    return f"{round(number):,}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `0 runs`, `1 run`, `2 batches`, `2,000 runs`."""
    if number != 1:
        noun += "es" if noun.endswith("ch") else "s"
    return f"{count_text(number)} {noun}"


def counted_of(part: int, whole: int, noun: str) -> str:
    """Return a part of a whole with its noun: `3 of 1,000 runs`."""
    return f"{count_text(part)} of {counted(whole, noun)}"


def of_text(part: int, whole: int) -> str:
    """Return a part of a whole without a noun: `3 of 1,000`."""
    return f"{count_text(part)} of {count_text(whole)}"


def short_count(count: int) -> str:
    """Return a count in at most four digits: `950`, `1.2k`, `35k`, `1.4M`."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if count >= 10 * size:
            return f"{count // size:,}{unit}"
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(count)


def figure(value: float) -> str:
    """Return a number with at most three decimals. A number below 0.001 has three significant digits instead."""
    if not math.isfinite(value):
        return str(value)
    shown = f"{value:.3g}"
    if value == 0 or abs(value) >= 0.001:
        shown = f"{value:.3f}".rstrip("0").rstrip(".")
    # Unlike a hyphen, a minus sign is as wide as a plus sign, so columns of signed numbers are aligned.
    if shown.startswith("-"):
        return f"−{shown[1:]}"
    return shown


def setting_text(value: float) -> str:
    """Return a user's setting, such as a threshold, with all digits and without binary rounding errors."""
    return f"{value:.12g}"


def seconds_text(seconds: float) -> str:
    """Return a time limit: `10 s`, `2.5 s`."""
    return f"{setting_text(seconds)} s"


def integer_if_whole(number: float) -> float:
    """Return a number without a fraction as an integer, and any other number unchanged."""
    if isinstance(number, float) and number.is_integer() and abs(number) < 1e15:
        return int(number)
    return number


def number_text(number: float) -> str:
    """Return a number with all its digits, as messages about a check quote it."""
    return repr(integer_if_whole(number))


def range_text(low: float, high: float) -> str:
    """Return a range of numbers in words: `at least 3`, `3..5`, `any number`."""
    if low == -math.inf and high == math.inf:
        return "any number"
    if low == -math.inf:
        return f"at most {number_text(high)}"
    if high == math.inf:
        return f"at least {number_text(low)}"
    return f"{number_text(low)}..{number_text(high)}"


def rate_text(share: float | None) -> str:
    """Return a share from 0 to 1 as a percentage: `66.7%`. Only 1 is shown as `100.0%`."""
    if share is None:
        return NOTHING
    return f"{decimals(100 * share, 1, full=100)}%"


def rates_text(low: float, high: float) -> str:
    """Return an interval of shares: `48.2% to 81.0%`."""
    return f"{rate_text(low)} to {rate_text(high)}"


def points_text(difference: float) -> str:
    """Return a difference of shares in percentage points, with its sign: `+4.2`."""
    return _signed(100 * difference, 1, 100)


def score_text(score: float | None, absent: str = "n/a") -> str:
    """Return a score with two decimals, or `absent` if a grader does not apply. Only 1 is shown as `1.00`."""
    if score is None:
        return absent
    if score == 1:  # as most scores are
        return "1.00"
    return decimals(score)


def mean_text(mean: float | None) -> str:
    """Return a mean of scores, or of another measure, with the decimals of a score; `–` for `None`."""
    if mean is None:
        return NOTHING
    return decimals(mean)


def scores_text(low: float, high: float) -> str:
    """Return an interval of scores: `0.71 to 0.92`."""
    return f"{decimals(low)} to {decimals(high)}"


def difference_text(difference: float) -> str:
    """Return a difference of scores with its sign, with one decimal more than a score: `+0.013`."""
    return _signed(difference, 3, 1)


def _signed(number: float, digits: int, full: float) -> str:
    # Adding 0.0 turns a negative zero into a positive one.
    return f"{float(decimals(number, digits, full=full)) + 0.0:+.{digits}f}"


def reached_text(value: float, threshold: float, *, is_rate: bool = False) -> str:
    """Return a score or a rate that was compared with a threshold: `0.67`, `66.7%`.

    The text has enough decimals to differ from the threshold."""
    if is_rate:
        return f"{_apart(100 * value, 100 * threshold, 1, 100)}%"
    return _apart(value, threshold, 2, 1)


def _apart(value: float, threshold: float, digits: int, full: float) -> str:
    for more in range(digits, 10):
        text = decimals(value, more, full=full)
        if (float(text) < threshold, float(text) > threshold) == (value < threshold, value > threshold):
            return text
    return decimals(value, digits, full=full)


def demanded_text(threshold: float, *, is_rate: bool) -> str:
    """Return a threshold with all its digits, as a score or as the percentage of a rate: `0.85`, `85%`."""
    if is_rate:
        return f"{setting_text(100 * threshold)}%"
    return setting_text(threshold)


def p_text(p: float, level: float) -> str:
    """Return a p value: `p = 0.18`, with enough digits to show whether it is above `level`."""
    if p < 0.001:
        return "p < 0.001"
    digits = 1 - math.floor(math.log10(p))
    text = decimals(p, digits)
    # If the rounded value would be on the other side of the level, more digits are shown.
    while (float(text) <= level) != (p <= level):
        digits += 1
        text = f"{p:.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"p = {text}"


def duration_text(milliseconds: float | None) -> str:
    """Return a measured time: `<1 ms`, `12 ms`, `1.4 s`, `2:05 min`, `1:02:05 h`."""
    if milliseconds is None:
        return NOTHING
    if 0 < milliseconds < 1:
        return "<1 ms"
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 99_950:
        return f"{milliseconds / 1000:.1f} s"
    seconds = milliseconds / 1000
    unit = "h" if seconds >= 3600 else "min"
    return f"{elapsed_text(seconds)} {unit}"


def elapsed_text(seconds: float) -> str:
    """Return a running time as on a clock: `0:04`, `12:30`, `1:02:03`."""
    whole = int(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours}:{minutes:02}:{whole % 60:02}"
    return f"{minutes}:{whole % 60:02}"


def estimate_time_text(seconds: float) -> str:
    """Return an estimated time in one or two units: `8 s`, `3 min`, `2 h 10 min`."""
    if seconds < 60:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    # Above ten hours, minutes would suggest a precision that no estimate has.
    if rest and hours < 10:
        return f"{hours:,} h {rest} min"
    return f"{hours:,} h"


def pace_text(per_minute: float | None) -> str:
    """Return a number of cases per minute. A number below 100 has one decimal."""
    if per_minute is None:
        return NOTHING
    if per_minute >= 100:
        return f"{per_minute:,.0f}"
    return f"{per_minute:.1f}"


def bytes_text(number: int) -> str:
    """Return a size: `12 kB`, `3.4 MB`, `1.2 GB`."""
    if number < 1_000_000:
        return f"{number / 1_000:.0f} kB"
    if number < 1_000_000_000:
        return f"{number / 1_000_000:.1f} MB"
    return f"{number / 1_000_000_000:.1f} GB"


def times_text(factor: float) -> str:
    """Return a factor: `2.4 times`."""
    return f"{factor:.1f} times"


def cost_text(dollars: float | None) -> str:
    """Return an amount in US dollars. Smaller amounts have more decimals. `None`, an unknown price, is `unknown`."""
    if dollars is None:
        return "unknown"
    if not dollars:
        return "$0"
    if 0 < dollars < 0.000001:
        return "<$0.000001"
    if dollars >= 1:
        return f"${dollars:,.2f}"
    if dollars >= 0.01:
        return f"${dollars:,.4f}"
    return f"${dollars:,.6f}"


def with_user_cost(cost: str, user_usd: float | None) -> str:
    """Return a cost, and the cost of the model that played the user, if any: `$0.021 + user $0.012`."""
    if user_usd == 0:
        return cost
    return f"{cost or '$0'} + user {cost_text(user_usd)}"


def tokens_text(
    input_tokens: int, output_tokens: int, cached: int = 0, reasoning: int = 0, *, unit: str = " tokens"
) -> str:
    """Return numbers of tokens: `1,200 tokens in (300 cached), 56 out (20 reasoning)`."""
    text = f"{input_tokens:,}{unit} in"
    if cached:
        text += f" ({cached:,} cached)"
    text += f", {output_tokens:,} out"
    if reasoning:
        text += f" ({reasoning:,} reasoning)"
    return text


def short_tokens_text(input_tokens: int, output_tokens: int) -> str:
    """Return numbers of tokens in a short form: `1.2k in, 56 out`."""
    return f"{short_count(input_tokens)} in, {short_count(output_tokens)} out"


_UNITS = ((86_400, "day"), (3_600, "h"), (60, "min"))
_AGO_UP_TO_S = 14 * 86_400
"""The age in seconds from which times are shown as dates."""


def moment_text(at_ms: float) -> str:
    """Return a time in milliseconds since 1970 in the local time zone: `2026-11-22 14:03`."""
    return f"{datetime.fromtimestamp(at_ms / 1000):%Y-%m-%d %H:%M}"


def age_text(at_ms: float, now: datetime) -> str:
    """Return the age of a time in milliseconds since 1970: `now`, `4 min`, `3 h`, `2 days`.

    An old time becomes its date."""
    seconds = max(now.timestamp() - at_ms / 1000, 0.0)
    if seconds >= _AGO_UP_TO_S:
        return f"{datetime.fromtimestamp(at_ms / 1000):%Y-%m-%d}"
    for length, unit in _UNITS:
        if seconds >= length:
            number = int(seconds // length)
            if unit == "day" and number > 1:
                unit = "days"
            return f"{number} {unit}"
    return "now"
