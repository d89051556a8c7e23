"""Advice on why a server did not start: it may lack variables, or a download may have been interrupted."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from workbench.config.passed_variables import withheld_variables
from workbench.config.secrets import names_a_secret
from workbench.startup import late_pattern

_MAX_NAMES = 5
"""The number of variables that a message names."""

_MAX_UNLIKELY_NAMES = 3
"""The number of variables that a message names without a sign that the server needs them."""

_MIN_NAMED_CHARS = 4
"""The shortest name that counts as named in a server's output."""

_OF_EVERY_SHELL = late_pattern(
    "_|PWD|OLDPWD|SHLVL|LANG|LANGUAGE|LC_.*|LS_COLORS|LESS.*|PAGER|EDITOR|VISUAL|MAIL|HOSTNAME|HIST.*|PS\\d|COLUMNS|"
    "LINES|COLORTERM|CLICOLOR.*|TERM_.*|XDG_.*|SSH_.*|DBUS_.*|GPG_.*|GTK_.*|QT_.*|GNOME_.*|DESKTOP_.*|WAYLAND_.*|DISPLAY|"
    "WINDOWID|VTE_.*|TMUX.*|STY|MANPATH|INFOPATH|DEBIAN_FRONTEND|CI|PYTEST_.*|WORKBENCH_.*|COLORFGBG|PYTHON.*|CONDA_.*|TOX_.*"
)
"""Variables of most shells that hardly any server needs. They are named only if the server's output names them."""

_NAME = late_pattern(r"[A-Za-z_]\w*", re.ASCII)
_NAMES_KEY = late_pattern(r"(?<![A-Za-z0-9_])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?![A-Za-z0-9_])")


# If npx is killed during a download, later starts do not complete the download, because npx only checks whether the
# package's folder exists.
_CUT_OFF_DOWNLOAD = late_pattern(r"Cannot find (?:package|module) .*?(?P<folder>/[^'\"\n]*/_npx/[0-9a-f]{16})/")


_MISSING_FILE = late_pattern(r"can't open file|No such file or directory|Cannot find module|ENOENT|not found in PATH")


def start_advice(environment: Mapping[str, str], given: Collection[str], output: Sequence[str], name: str) -> str:
    """Return advice on a server that did not start, "" if there is none.

    `environment` are the variables of the shell and of `.env`. `given` are the names of the variables that the server
    got. `output` is the end of its standard error. The advice contains names of variables, but no values."""
    if (cut_off := _CUT_OFF_DOWNLOAD.search("\n".join(output))) is not None:
        return f"an earlier download by npx was cut off: remove {cut_off['folder']}, and start it again"
    held_back = []
    for variable, value in environment.items():
        if value and variable not in given and _NAME.fullmatch(variable):
            held_back.append(variable)
    likely = list(dict.fromkeys(_likely(held_back, environment, output, name)))
    unset = [variable for variable in _keys_named_in(output) if variable not in environment and variable not in given]
    if not likely and not unset:
        if _MISSING_FILE.search("\n".join(output)) is not None:
            return "its output names a file that it did not find: check its command and its folder (cwd)"
        return _of_unlikely(_unusual(held_back))
    parts = []
    if likely:
        others = {*_unusual(held_back), *likely}
        parts.append(f"it did not get these variables of the shell: {_listed(likely[:_MAX_NAMES], others)}")
    if unset:
        parts.append(
            f"its output names {', '.join(unset[:_MAX_NAMES])}, not set here: set it in the shell or in a .env"
        )
    first = unset[0] if unset else likely[0]
    parts.append(f'env = {{ {first} = "${first}" }} of the server hands it over')
    return "; ".join(parts)


def _of_unlikely(names: Sequence[str]) -> str:
    if not names:
        return ""
    shown = _listed(names[:_MAX_UNLIKELY_NAMES], {*names})
    way = 'env = { NAME = "$NAME" } of the server hands one over'
    return f"it did not get these variables of the shell: {shown}; {way}"


def _listed(shown: Sequence[str], names: Collection[str]) -> str:
    text = ", ".join(shown)
    if others := len(names) - len(shown):
        text += f" and {others} more"
    return text


def _likely(
    held_back: Sequence[str], environment: Mapping[str, str], output: Sequence[str], server: str
) -> Iterator[str]:
    """Yield the names of variables that a server may lack, the most likely first. A name may occur several times."""
    text = "\n".join(output)
    for name in held_back:
        if len(name) >= _MIN_NAMED_CHARS and re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", text):
            yield name
    words = set(re.findall(r"[A-Z0-9]{3,}", server.upper()))
    others = _unusual(held_back)
    for name in others:
        if words & set(name.upper().split("_")):
            yield name
    # Variables for a proxy or registry are held back if they contain a password. Without these variables, downloads may
    # fail.
    yield from withheld_variables({name: environment[name] for name in held_back})
    yield from filter(names_a_secret, others)


def _unusual(names: Sequence[str]) -> list[str]:
    return [name for name in sorted(names) if not _OF_EVERY_SHELL.fullmatch(name)]


def _keys_named_in(output: Sequence[str]) -> list[str]:
    found: list[str] = []
    for line in output:
        found += filter(names_a_secret, _NAMES_KEY.findall(line))
    return list(dict.fromkeys(found))
