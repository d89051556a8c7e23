"""Fits colours to terminals with 256 colours: chooses the nearest of 240 fixed colours and keeps the contrast."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import product

from rich.color import Color, ColorType
from rich.style import Style

GROUNDS = ("background", "panel", "resting_cursor", "cursor")
LEVELS = (7.0, 4.5, 3.0)
"""The levels of contrast of WCAG 2: AAA and AA for text, AA for large text. A colour keeps its highest level."""

_CUBE = (0, 95, 135, 175, 215, 255)
_HUE_WEIGHT = 5.0
"""The weight of a difference in hue relative to lightness. A grey cannot replace a colour."""


def _fixed_colours() -> Iterator[tuple[str, int]]:
    # The palette of xterm: the colours 16 to 231 are a cube of 6 × 6 × 6. The colours 232 to 255 are greys in steps of
    # 10.
    for step in range(24):
        yield f"#{8 + 10 * step:02x}" + f"{8 + 10 * step:02x}" * 2, 232 + step
    for r, g, b in product(range(6), repeat=3):
        yield f"#{_CUBE[r]:02x}{_CUBE[g]:02x}{_CUBE[b]:02x}", 16 + 36 * r + 6 * g + b


FIXED: Mapping[str, int] = dict(_fixed_colours())
"""The numbers of the colours that are equal on all terminals with 256 colours. Users can change the first 16
colours."""


def fitted_to_256(colours: Mapping[str, str]) -> dict[str, str]:
    """Return the colours of a theme, by name, with each `#rrggbb` replaced by a fixed colour.

    Different colours stay different, and text keeps its level of contrast to the backgrounds."""
    # Backgrounds are chosen first, because the contrast of all other colours depends on them. Colours that are equal in
    # the theme get the same replacement, which `chosen` records.
    fitted = {name: value for name, value in colours.items() if not value.startswith("#")}
    chosen: dict[str, str] = {}

    def choose(name: str, among: Iterable[str], taken: Collection[str] = ()) -> None:
        if name in fitted:
            return
        value = colours[name]
        free = [colour for colour in among if colour not in taken]
        chosen.setdefault(value, _nearest(value, free or FIXED))
        fitted[name] = chosen[value]

    for name in GROUNDS:
        choose(name, FIXED, [fitted[ground] for ground in GROUNDS if ground in fitted])
    grounds = {ground: fitted[ground] for ground in GROUNDS if fitted[ground].startswith("#")}
    choose("border", FIXED, grounds.values())
    before = [colours[ground] for ground in grounds]
    readable = {level: _readable(grounds, level) for level in LEVELS}
    chosen.clear()
    for name, value in colours.items():
        if name not in fitted and name != "on_accent":
            choose(name, readable.get(_level(value, before), FIXED), chosen.values())
    if fitted["accent"].startswith("#"):
        choose("on_accent", _readable({"accent": fitted["accent"]}, 4.5))
    choose("on_accent", FIXED)
    return fitted


@lru_cache(maxsize=1024)
def in_256(style: Style) -> Style:
    """Return a style with each colour replaced by the nearest of the 240 fixed colours."""
    fitted = [colour and _fixed(colour) for colour in (style.color, style.bgcolor)]
    return style + Style.from_color(*fitted)


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours (`#rrggbb`) by WCAG 2, from 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _level(value: str, grounds: Collection[str]) -> float:
    lowest = min((contrast(value, ground) for ground in grounds), default=0.0)
    for level in LEVELS:
        if lowest >= level:
            return level
    return 0.0


def _readable(grounds: Mapping[str, str], level: float) -> list[str]:
    """Return the fixed colours whose contrast to every background is at least `level`.

    If no colour reaches `level`, return the one with the highest contrast."""
    wanted = []
    for name, ground in grounds.items():
        # On the coloured row of the cursor, a contrast of 4.5 is enough. Nearly all colours that reach 7 there are
        # greys.
        wanted.append((ground, min(level, 4.5) if "cursor" in name else level))
    shares = {}
    for colour in FIXED:
        shares[colour] = min((contrast(colour, ground) / least for ground, least in wanted), default=1.0)
    return [colour for colour in FIXED if shares[colour] >= 1] or [max(shares, key=shares.__getitem__)]


def _fixed(colour: Color) -> Color:
    if colour.type is not ColorType.TRUECOLOR or colour.triplet is None:
        return colour
    return Color.from_ansi(FIXED[_nearest(colour.triplet.hex, FIXED)])


def _nearest(value: str, among: Iterable[str]) -> str:
    if value in FIXED and among is FIXED:
        return value
    light, a, b = _oklab(value)

    def distance(other: str) -> float:
        other_light, other_a, other_b = _oklab(other)
        return (light - other_light) ** 2 + _HUE_WEIGHT * ((a - other_a) ** 2 + (b - other_b) ** 2)

    return min(among, key=distance)


def _linear(value: str) -> tuple[float, float, float]:
    return _linear_share(value[1:3]), _linear_share(value[3:5]), _linear_share(value[5:7])


def _linear_share(digits: str) -> float:
    # The transfer function of sRGB (IEC 61966-2-1).
    share = int(digits, 16) / 255
    if share <= 0.04045:
        return share / 12.92
    return math.pow((share + 0.055) / 1.055, 2.4)


@cache
def _luminance(value: str) -> float:
    # The relative luminance of WCAG 2.
    red, green, blue = _linear(value)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@cache
def _oklab(value: str) -> tuple[float, float, float]:
    """Return a colour in the Oklab space, where distances match perceived differences."""
    # The matrices of Björn Ottosson, "A perceptual color space for image processing" (2020).
    red, green, blue = _linear(value)
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    medium = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )
