"""Finds the handlers of a message once per class of widget.

Textual searches all base classes of a widget for each message, several times for each key. Most messages have no
handler in most widgets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, cast

from textual._callback import invoke
from textual.message import Message
from textual.message_pump import MessagePump

Handler = tuple[type, Callable[[Message], Awaitable[object]]]
"""A class, and its handler bound to a widget."""

_find = MessagePump._get_dispatch_methods

_named: dict[tuple[type, type, str], tuple[tuple[type, str], ...] | None] = {}
"""The classes that handle a message by a method's name. `None` if any handler is chosen by the decorator `on`."""


def _find_once(self: MessagePump, method_name: str, message: Message) -> Iterable[Handler]:
    key = (type(self), type(message), method_name)
    try:
        named = _named[key]
    except KeyError:
        named = _named[key] = _named_handlers(*key)
    if named is None:
        return cast("Iterable[Handler]", _find(self, method_name, message))
    if not named:
        return ()
    return _bound(self, named, message)


def _named_handlers(widget: type, kind: type, method_name: str) -> tuple[tuple[type, str], ...] | None:
    kinds = [base for base in kind.__mro__ if issubclass(base, Message)]
    found = []
    for base in widget.__mro__:
        decorated: dict[type[Message], Any] = base.__dict__.get("_decorated_handlers", {})
        if any(kind in decorated for kind in kinds):
            return None
        name = next((name for name in (f"_{method_name}", method_name) if base.__dict__.get(name)), None)
        if name is not None:
            found.append((base, name))
    return tuple(found)


def _bound(widget: MessagePump, named: Iterable[tuple[type, str]], message: Message) -> Iterator[Handler]:
    for base, name in named:
        # A handler may prevent those of the base classes.
        if message._no_default_action:
            return
        method = base.__dict__[name]
        if not getattr(method, "_textual_on", None):
            yield base, method.__get__(widget, base)


async def _handle(self: MessagePump, message: Message) -> None:
    """Call a message's handlers, then pass the message to the parent. Unlike Textual, log nothing for its console."""
    for _, method in self._get_dispatch_methods(message.handler_name, message):
        await invoke(method, message)
    parent = self._parent
    if message.bubble and parent and not message._stop_propagation:
        if message._sender is not None and message._sender == parent:
            message.stop()
        if self.is_parent_active and self.is_attached:
            message._bubble_to(parent)


MessagePump._get_dispatch_methods = _find_once  # type: ignore[method-assign]
MessagePump._on_message = _handle  # type: ignore[method-assign]
