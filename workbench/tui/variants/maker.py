"""Creates variants of suites with another system prompt or tool description, and runs them for comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from textual import events, on
from textual.app import ComposeResult

from workbench.authoring.document import HEAD, Document
from workbench.authoring.open_suite import OpenSuite
from workbench.show.difference import difference
from workbench.show.glyphs import GLYPHS
from workbench.show.highlight import PlainColours
from workbench.show.spans import EMPTY, Line, Role, with_margin
from workbench.show.visible import one_line
from workbench.suite.added_variants import HOST_NAMES
from workbench.suite.problems import tables
from workbench.suite.render import Table
from workbench.suite.settings import settings_of
from workbench.suite.suite_file import parse_suite
from workbench.suite.suite_text import SpliceError
from workbench.suite.variants import SEPARATOR, Variants
from workbench.tui.kit.actions import key_for
from workbench.tui.kit.dialogs import Dialog, Option, TextView, keys_line
from workbench.tui.kit.questions import NameScreen, QuestionScreen
from workbench.tui.kit.stage import Announce
from workbench.tui.kit.text_editor import TextEditor
from workbench.tui.tree.rows import keys_of

if TYPE_CHECKING:
    from workbench.trajectory.events import ToolDefinition
    from workbench.tui.shell.workbench import Workbench


Cases = Sequence[tuple[OpenSuite, tuple[str, ...]]]
"""Suites with the keys of some of their cases."""


class VariantMaker:
    """Creates variants of suites, and runs cases with and without a variant."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._selection = app.selection
        self._run_cases = app.services.starter.run_soon

    def run_all(self) -> None:
        """Run the selected cases without a variant and with each variant, and open the comparison."""
        cases = self._selection.runnable_below(self._selection.tree.suite_or_folder or self._selection.row)
        self._run_cases(cases, variants=Variants(all_of_them=True))
        self._app.perform("compare")

    def run_in_hosts(self) -> None:
        """Run the selected cases without a variant and with each bundled variant for hosts. Open the comparison."""
        cases = self._selection.runnable_below(self._selection.tree.suite_or_folder or self._selection.row)
        starter = self._app.services.starter
        starter.add_bundled_variants()
        starter.run_soon(cases, variants=Variants(HOST_NAMES))
        self._app.perform("compare")

    def make_prompt_variant(self) -> None:
        """Create a variant with another system prompt. Offer to run it on the selected case or on all cases."""
        suite, outline = self._selection.suite, self._selection.outline
        if suite is None:
            return
        read = suite.file.suite
        if read is None:
            return
        present, name = read.system, suite.path.stem
        keys = tuple(each.key for each in suite.run_cases)
        if outline is not None:
            case = suite.file.case_of(outline.index, outline.id)
            present, name, keys = settings_of(read, case).system, outline.name, keys_of(suite, outline)
        self._app.work(
            self._make(
                suite.path,
                keys,
                f"Another system prompt of {one_line(name)}",
                "Change the prompt. The suite keeps this one; the variant uses yours in all cases.",
                present or "",
                lambda text: {"system": text},
                self._app.announce,
            ),
            "ask",
        )

    def make_tool_variant(
        self, path: Path, tool: ToolDefinition, announce: Announce, changed: Callable[[], object]
    ) -> None:
        """Create a variant with another description of a tool. `changed` is called after the dialogs have closed."""
        keys: tuple[str, ...] = ()
        suite = self._selection.open_suites.at(path)
        if suite is not None:
            keys = tuple(each.key for each in suite.run_cases)

        async def make() -> None:
            await self._make(
                path,
                keys,
                f"Another description of {one_line(tool.name)}",
                "Change the description. The suite keeps this one; the variant offers the tool with yours.",
                tool.description,
                lambda text: {"changes": [{"tool": tool.name, "description": text}]},
                announce,
            )
            changed()

        self._app.work(make(), "ask")

    async def _make(
        self,
        path: Path,
        keys: tuple[str, ...],
        title: str,
        explanation: str,
        present: str,
        table: Callable[[str], Table],
        announce: Announce,
    ) -> None:
        try:
            suite = self._selection.open_suites.editable(path)
            # `editable` comes first, so that a suite that cannot be edited is refused before the user types anything.
            taken = set()
            for _, each in tables(suite.document.table(HEAD).get("variants")):
                taken.add(each.get("name"))

            def refusal(name: str) -> str | None:
                if SEPARATOR in name:
                    return f"{SEPARATOR.strip()!r} stands between a model and its variant: omit it"
                if name in taken:
                    return f"the suite has a variant {name!r} already"
                return None

            asked = "A short name; runs are shown as MODEL × NAME."
            typed, name = present, ""
            # Three dialogs ask for the text, for the name, and for consent. From each, the user can go back to the
            # text.
            while True:
                text = await self._app.ask(VariantTextScreen(self._app, title, explanation, present, typed))
                if text is None:
                    return
                typed = text
                named = await self._app.ask(NameScreen("Name of the variant", name, asked, refusal))
                if named is None:
                    continue
                name = named
                suite = self._selection.open_suites.editable(path)
                document = _with_variant(suite, {"name": name, **table(text)})
                texts, documents = (present, text), (suite.document.text, document.text)
                next_ = await self._app.ask(VariantScreen(name, title, texts, documents, path.name))
                if next_ in ("run", "write"):
                    break
            # The suite may have changed during the questions, so the change is computed again.
            suite = self._selection.open_suites.editable(path)
            document = _with_variant(suite, {"name": name, **table(text)})
        except (SpliceError, ValueError) as error:
            announce(f"No variant was made: {error}", "warned", GLYPHS.warned)
            return
        self._selection.open_suites.change(suite, document, f"variant {one_line(name)}")
        announce(f"Variant {one_line(name)} made; {key_for('edit.undo')} takes it back", "passed", GLYPHS.passed)
        if next_ == "run":
            variants = self._selection.variants
            # The comparison shows the selected variants, so the new variant is selected too.
            self._selection.variants = replace(variants, names=variants.names | {name}, plain=True)
            self._run_cases([(suite, keys)], variants=Variants(frozenset({name})))
            self._app.perform("compare")


def _with_variant(suite: OpenSuite, variant: Table) -> Document:
    """Return the document of a suite with one more variant.

    Raises:
        SpliceError: The variant cannot be written into the text.
        ValueError: The suite would have errors with the variant."""
    present = suite.document.table(HEAD).get("variants")
    if present is not None and not isinstance(present, list):
        raise ValueError("the suite's `variants` are not a list: correct them first")
    document = suite.document.with_header("variants", [*(present or ()), variant])
    read = parse_suite(document.text, suite.path)
    if read.suite is None:
        raise ValueError(f"the suite would have errors: {read.errors[0].message}")
    return document


_MIN_ROWS = 4
_OTHER_ROWS = 11
"""The rows of frame, title, explanation and keys, and of the screen around them."""


class VariantTextScreen(Dialog[str]):
    """Asks for a text to replace the text `present`. The field first contains `text`."""

    HAS_SUBJECT: ClassVar[bool] = False
    DEFAULT_CSS = """
    VariantTextScreen > Vertical { width: 110; }
    VariantTextScreen TextEditor { background: $panel; }
    """

    def __init__(self, app: Workbench, title: str, explanation: str, present: str, text: str) -> None:
        self.TITLE_LINE = title  # type: ignore[misc]
        self._app = app
        self._explanation = explanation
        self._present, self._text = present, text
        super().__init__(keys_line(("Ctrl+S", "name it"), ("Esc", "leave")))

    def body(self) -> ComposeResult:
        yield TextView(lambda width: [EMPTY, *with_margin(self._explanation, width, "muted"), EMPTY], "reading")
        yield TextEditor(self._text_changed, PlainColours, "variant-text")

    def on_mount(self) -> None:
        editor = self.query_one(TextEditor)
        editor.assist = self._assist
        editor.begin(self._text, 1, (0, 0), 0)
        editor.typed.move("text_end")
        self.set_focus(editor)
        self._fit()

    def _assist(self, key: str) -> bool:
        # This is not a binding, because Textual would run a binding before earlier letters of the same burst.
        if key == "ctrl+s":
            self._submit()
        return key == "ctrl+s"

    def _submit(self) -> None:
        text = self.query_one(TextEditor).typed.text.strip()
        if not text:
            self._say("Write a text: an empty one looks like none", "warned", GLYPHS.warned)
        elif text == self._present.strip():
            self._say("This is the suite's own text: change it", "warned", GLYPHS.warned)
        else:
            self.dismiss(text)

    @on(TextEditor.Ended)
    def _ended(self) -> None:
        self.action_leave()

    @on(TextEditor.Copied)
    def _copied(self, event: TextEditor.Copied) -> None:
        self._app.copy(event.text, event.what, self._say)

    def _say(self, text: str, role: Role = "text", sign: str = "") -> None:
        self.show_notice(text, role, sign)

    def _text_changed(self, text: str, step: int) -> None:
        self.set_keys(self._keys)
        self._fit()

    def on_resize(self, event: events.Resize) -> None:
        self._fit()

    def _fit(self) -> None:
        editor = self.query_one(TextEditor)
        rows = max(editor.line_count(), _MIN_ROWS)
        editor.styles.height = max(min(rows, self.app.size.height - _OTHER_ROWS), 1)


VariantAnswer = Literal["run", "write", "no"]


class VariantScreen(QuestionScreen[VariantAnswer]):
    """Asks whether to write a variant into the suite. Shows the changes of the text and of the file."""

    DEFAULT_CSS = "VariantScreen > Vertical { width: 110; }"
    HAS_SUBJECT: ClassVar[bool] = False

    def __init__(self, name: str, what: str, texts: tuple[str, str], documents: tuple[str, str], file: str) -> None:
        self.TITLE_LINE = f"The variant {one_line(name)}"  # type: ignore[misc]
        text, written = difference(*texts), difference(*documents)

        def lines(width: int) -> list[Line]:
            return [
                EMPTY,
                *with_margin(f"{what}: {text}.", width),
                *text.drawn(width),
                EMPTY,
                *with_margin(f"Written into {one_line(file)}, in one undo step:", width),
                *written.drawn(width),
                EMPTY,
            ]

        answers: list[tuple[VariantAnswer, Option]] = [
            ("run", Option("write and run", "as written and as the variant, and compare them", "and compare")),
            ("write", Option("write", "the variant into the suite, and run nothing", "run nothing")),
            ("no", Option("back", "to the text: nothing is written yet", "")),
        ]
        # Choosing to run is harmless, because the run itself asks for trust.
        super().__init__(lines, answers, leaving="go back to the text", harmless=frozenset({"run", "write"}))
