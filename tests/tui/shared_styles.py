"""Stylesheets that the apps of this process share: read once, and matched once with each state of a widget.

Each test opens an app of its own. A quarter of what an app does until its first frame is to match the same stylesheets
with the same widgets.
"""

from __future__ import annotations

from typing import Any

from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.styles import RulesMap
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode

_ORDER = ("first-of-type", "last-of-type", "first-child", "last-child", "empty")
"""The pseudo classes that make Textual note that the order of widgets matters."""

Pass = dict[tuple[Any, ...], Any]
"""What is known about widgets while styles are applied to several of them: meanwhile none of them changes its state."""


class _Matches:
    """The styles that the rules of a stylesheet give a widget, by the state of the widget and of those around it."""

    def __init__(self, rules: list[RuleSet]) -> None:
        self.rules = rules
        self.pseudo_classes: dict[frozenset[str], frozenset[str]] = {}
        """By the names that select a widget, the pseudo classes in the selectors of these rules."""
        self.styles: dict[tuple[object, ...], RulesMap] = {}


_parsed: dict[frozenset[tuple[str, str]], LRUCache[tuple[Any, ...], list[RuleSet]]] = {}
"""By the variables of a theme, the rules of the stylesheets that were parsed with it."""
_matched: dict[tuple[int, ...], _Matches] = {}
_normal: dict[int, tuple[RulesMap, RulesMap]] = {}
"""By number, styles and what they are once a widget has them: units and colours are converted."""
_latest: dict[DOMNode, RulesMap] = {}
"""The styles of the widgets that are being matched."""

_init = Stylesheet.__init__
_apply = Stylesheet.apply
_replace_rules = Stylesheet.replace_rules
_set_variables = Stylesheet.set_variables


def _init_shared(self: Stylesheet, *, variables: dict[str, str] | None = None) -> None:
    _init(self, variables=variables)
    _share(self)


def _set_variables_shared(self: Stylesheet, variables: dict[str, str]) -> None:
    self._parse_cache = LRUCache(1)  # what is cleared here is another's too
    _set_variables(self, variables)
    _share(self)


def _share(sheet: Stylesheet) -> None:
    sheet._parse_cache = _parsed.setdefault(frozenset(sheet._variables.items()), LRUCache(1024))


def _matches_of(sheet: Stylesheet) -> _Matches:
    rules, own = sheet.rules, vars(sheet)
    if own.get("_matched_rules") is not rules:
        own["_matched_rules"] = rules
        own["_matches"] = _matched.setdefault(tuple(map(id, rules)), _Matches(rules))
    matches: _Matches = own["_matches"]
    return matches


def _apply_shared(self: Stylesheet, node: DOMNode, *, animate: bool = False, cache: Pass | None = None) -> None:
    """Apply the styles of another widget in the same state, of this app or of one before."""
    known, by_name = _matches_of(self), self.rules_map
    names = frozenset(by_name.keys() & node._selector_names)
    pseudo_classes = known.pseudo_classes.get(names)
    if pseudo_classes is None:
        pseudo_classes = frozenset[str]().union(*(rule.pseudo_classes for name in names for rule in by_name[name]))
        known.pseudo_classes[names] = pseudo_classes
    node._has_hover_style = "hover" in pseudo_classes
    node._has_focus_within = "focus-within" in pseudo_classes
    node._has_order_style = not pseudo_classes.isdisjoint(_ORDER)
    node._has_odd_or_even = not pseudo_classes.isdisjoint(("odd", "even"))
    seen: Pass = {} if cache is None else cache
    around = () if node._parent is None else _state_around(node._parent, pseudo_classes, seen)
    state = (names, around, _state(node, pseudo_classes))
    styles = known.styles.get(state)
    if styles is None:
        _apply(self, node, animate=animate)
        known.styles[state] = _latest.pop(node, {})
        return
    if styles:
        self.replace_rules(node, styles, animate=animate)
        del _latest[node]
    self._process_component_classes(node)


def _state_around(node: Any, pseudo_classes: frozenset[str], seen: Pass) -> tuple[object, ...]:
    """Return the states of a widget and of those that it stands in, by which selectors may choose what is in it."""
    key = (node, pseudo_classes)
    states: tuple[object, ...] | None = seen.get(key)
    if states is None:
        around = _state_around(node._parent, pseudo_classes, seen) if isinstance(node._parent, DOMNode) else ()
        states = seen[key] = (around, _state(node, pseudo_classes))
    return states


def _state(node: DOMNode, pseudo_classes: frozenset[str]) -> tuple[object, ...]:
    held = [name for name in pseudo_classes if node.has_pseudo_class(name)]
    return (type(node), node._id, frozenset(node._classes), *held)


def _replace_changed(cls: type[Stylesheet], node: DOMNode, rules: RulesMap, animate: bool = False) -> None:
    """Give a widget its styles, unless it has them: all at once when it has none yet."""
    _latest[node] = rules
    base = node.styles.base
    given, updates = vars(base).get("_given", (None, 0))
    if given is rules and updates == base._updates:
        if not animate:
            node.notify_style_update()
        return
    is_new = not base._rules and not node._is_mounted
    if is_new and id(rules) in _normal:
        base._rules.update(_normal[id(rules)][1])
        base._updates += 1
        if "layout" in rules:  # a layout belongs to one widget
            base.layout = rules["layout"]
        node.notify_style_update()
    else:
        _replace_rules(node, rules, animate)
        if is_new:
            _normal[id(rules)] = rules, {**base._rules}
    vars(base)["_given"] = rules, base._updates


def share_styles() -> None:
    """Have the apps of this process share what was read of stylesheets and matched with widgets."""
    parts: Any = Stylesheet
    parts.__init__ = _init_shared
    parts.set_variables = _set_variables_shared
    parts.apply = _apply_shared
    parts.replace_rules = classmethod(_replace_changed)
