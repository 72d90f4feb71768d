"""A model of Lexbor's open elements that is exact, for the markup of ordinary pages.

`clone_memory` bounds the clones of formatting elements by the text of a page alone. Old pages may
exceed that bound by habits that cost nothing, such as a `<font>` that is never closed in each cell
of a table. This model follows the tree construction of the WHATWG HTML Standard (13.2.6) instead,
tag by tag, and counts the clones as they are made.

It knows no selects, templates, framesets and other rare elements: at the first one it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawld.core.content.formatting_stack import (
    BUTTON_SCOPE,
    CELLS,
    HEADING_NAMES,
    ROWS,
    SCOPE,
    STRUCTURE,
    FormattingStack,
    OpenElement,
)
from crawld.core.content.open_elements import CLOSES_P, FORMATTING, IN_HEAD, SECTIONS, VOID
from crawld.core.content.tag_syntax import ATTRIBUTE_NAME, RAW, SIMPLE_SVG, TOKEN, raw_end
from crawld.core.content.tree_memory import clone_bytes

if TYPE_CHECKING:
    import re

UNKNOWN = frozenset(
    b"select template math frameset frame object applet marquee nobr plaintext option optgroup "
    b"rb rp rt rtc textarea keygen dialog search noframes isindex image menuitem selectedcontent "
    b"foreignobject desc annotation-xml mi mo mn ms mtext".split()
)
"""Start tags at which the model ends."""

_MAX_STEPS, _STEPS_PER_BYTE, _LEAST_STEPS = 2_000_000, 5, 50_000
"""Elements looked at, for all tags, before the model ends; ordinary pages take two for a tag."""

_BLOCKS = CLOSES_P | HEADING_NAMES
_TABLE_PARTS = STRUCTURE - {b"table"} | {b"col", b"colgroup"}
_IMPLIED = frozenset((b"dd", b"dt", b"li", b"p"))
_TERMS = frozenset((b"dd", b"dt"))
_NOT_SCOPED = {b"p", b"hr", b"table", b"xmp", b"form"} | HEADING_NAMES
_SCOPED_ENDS = {name: (frozenset((name,)), SCOPE) for name in CLOSES_P - _NOT_SCOPED | {b"button"}}
_SCOPED_ENDS |= dict.fromkeys(HEADING_NAMES, (HEADING_NAMES, SCOPE))
_SCOPED_ENDS[b"li"] = (frozenset((b"li",)), SCOPE | {b"ol", b"ul"})
"""What an end tag closes, and what it does not look beyond."""

_SILENT_VOID = frozenset(b"base basefont bgsound link meta param source track".split())
_STANDARD_DOCTYPE = b"<!doctype html"


class FormattingModel(FormattingStack):
    """Reads a page until its clones exceed a budget, or a tag is unknown.

    Attributes:
        position: offset of the tag or text at which it ended, or the size of the page.
        is_exact: whether all tags before were known.
    """

    def __init__(self, body: bytes, size: int, budget_bytes: int) -> None:
        super().__init__()
        self._body, self._size = body, size
        self._most_steps = min(_MAX_STEPS, _LEAST_STEPS + _STEPS_PER_BYTE * size)
        self._form: OpenElement | None = None
        self._in_body = False
        self._has_doctype = self._is_standard = False
        self.is_exact = True
        self.position = self._read(budget_bytes)

    def _read(self, budget_bytes: int) -> int:
        text_start, is_read = 0, False
        while not is_read:
            is_read = True
            for token in TOKEN.finditer(self._body, text_start, self._size):
                start = token.start()
                if text_start < start:
                    self._add_text(text_start, start)
                    if self.cloned_bytes > budget_bytes:
                        return text_start
                text_start = self._add_token(token)
                if not self.is_exact or self.cloned_bytes > budget_bytes:
                    return start
                if text_start != token.end():
                    is_read = False
                    break
        if text_start < self._size:
            self._add_text(text_start, self._size)
        return self._size if self.cloned_bytes <= budget_bytes else text_start

    def _add_token(self, token: re.Match[bytes]) -> int:
        """Add a tag, and the raw text after it; return the offset after both."""
        end = token.end()
        if token.lastindex is None:
            return self._add_sign(token[0], token.start(), end)
        if token.lastindex != 3 or self.steps > self._most_steps:
            self.is_exact = False  # CDATA, or too much to look at
            return end
        closing, name, attributes = token.group(1, 2, 3)
        name = name.lower()
        if closing:
            self._add_end(name)
            return end
        self._add_start(name, attributes)
        if name == b"svg":
            found = SIMPLE_SVG.match(self._body, end, self._size)
            self.is_exact = self.is_exact and found is not None
            return found.end() if found else end
        return raw_end(self._body, name, end, self._size) if name in RAW else end

    def _add_sign(self, markup: bytes, start: int, end: int) -> int:
        """Add a comment, a declaration, or a `<` that is text; return the offset after it."""
        if markup == b"<":
            self._add_text(start, end)
        if markup[:4] == b"<!--" or len(markup) == 1:
            return end
        if markup[:2] == b"<!" and not self._has_doctype and not self._in_body:
            self._has_doctype = True
            self._is_standard = markup.lower() == _STANDARD_DOCTYPE
        return min(end + 1, self._size)  # the `>`

    def _add_text(self, start: int, end: int) -> None:
        text = self._body[start:end]
        is_blank = text.isspace()
        if not self._in_body:
            self._in_body = not is_blank
        if not text.strip(b"\0") or not self._in_body:
            return
        if is_blank and self._stack and self._stack[-1].name in ROWS:
            return
        self._reconstruct()

    # --- start tags ------------------------------------------------------------------------------

    def _add_start(self, name: bytes, attributes: bytes) -> None:
        if name in UNKNOWN:
            self.is_exact = False
        if not self._in_body:
            if name in IN_HEAD and name not in (b"html", b"head"):
                return
            self._in_body = self._in_body or name not in IN_HEAD
        if name in (b"html", b"head", b"body"):
            return
        if name in _TABLE_PARTS or name == b"table":
            self._start_table_part(name)
        elif self._is_in_rows() and name in (b"form", b"input"):
            self._start_in_table(name, attributes)
        else:
            self._start(name, attributes)

    def _start(self, name: bytes, attributes: bytes) -> None:
        if name == b"form":
            if self._form is not None:
                return
            self._close_p()
            self._form = self._push(name)
        elif name in FORMATTING:
            self._start_formatting(name, attributes)
        elif name in _BLOCKS:
            self._start_block(name)
        elif name in _SILENT_VOID or name in RAW:
            return
        else:
            if name == b"button" and (at := self._in_scope((name,), SCOPE)) is not None:
                self._pop_to(at)
            self._reconstruct()
            if name not in VOID and name != b"svg":
                self._push(name)

    def _start_block(self, name: bytes) -> None:
        if name == b"li":
            self._close_item((name,))
        elif name in _TERMS:
            self._close_item(_TERMS)
        self._close_p()
        if name in HEADING_NAMES and self._stack and self._stack[-1].name in HEADING_NAMES:
            self._pop()
        if name == b"xmp":
            self._reconstruct()
        elif name != b"hr":
            self._push(name)

    def _start_formatting(self, name: bytes, attributes: bytes) -> None:
        if name == b"a" and (element := self._last_active(name)) is not None:
            self._adopt(name)
            if element in self._active:
                self._active.remove(element)
            if element.is_open:
                self._remove(element)
        self._reconstruct()
        count = len(ATTRIBUTE_NAME.findall(attributes))
        element = OpenElement(name, attributes, clone_bytes(len(attributes), count))
        self._stack.append(element)
        first, equal = 0, 0
        for at in range(len(self._active) - 1, -1, -1):
            other = self._active[at]
            self.steps += 1
            if other is None:
                break
            if other.name == name and other.markup == attributes:
                first, equal = at, equal + 1
        if equal >= 3:
            del self._active[first]
        self._active.append(element)

    def _start_in_table(self, name: bytes, attributes: bytes) -> None:
        if name == b"form":
            if self._form is None:
                self._form = OpenElement(name)
                self._form.is_open = False
        elif b"hidden" not in attributes.lower():
            self._reconstruct()
        elif self._active:
            self.is_exact = False  # it depends on the type

    def _start_table_part(self, name: bytes) -> None:
        if not self._structure:
            if name == b"table":
                self._start_table()
            return
        inner = self._structure[-1]
        if inner in CELLS or inner == b"caption":
            if name == b"table":
                self._start_table()
                return
            self._close_cell()
            self._start_table_part(name)
            return
        if name == b"table":
            self._pop_through(b"table")
            self._start_table_part(name)
        elif inner == b"tr" and name not in CELLS:
            self._pop_through(b"tr")
            self._start_table_part(name)
        elif inner in SECTIONS and name not in CELLS and name != b"tr":
            self._pop_through(inner)
            self._start_table_part(name)
        else:
            self._open_part(name)

    def _open_part(self, name: bytes) -> None:
        """Open a part within the innermost table, section or row, with what is implied."""
        self._clear_to_structure()
        if name in CELLS or name == b"tr":
            if self._structure[-1] == b"table":
                self._push(b"tbody")
            if name in CELLS and self._structure[-1] != b"tr":
                self._push(b"tr")
        if name not in (b"col", b"colgroup"):
            self._push(name)
        if name in CELLS or name == b"caption":
            self._active.append(None)

    def _start_table(self) -> None:
        if self._has_doctype and not self._is_standard:
            self.is_exact = self.is_exact and self._in_scope((b"p",), BUTTON_SCOPE) is None
        if self._is_standard:
            self._close_p()
        self._push(b"table")

    # --- end tags --------------------------------------------------------------------------------

    def _add_end(self, name: bytes) -> None:
        if not self._in_body:
            self._in_body = name in (b"html", b"body", b"br")
            return
        if name in FORMATTING:
            self._adopt(name)
        elif name in STRUCTURE:
            self._end_table_part(name)
        elif name == b"p":
            self._close_p()
        elif name == b"br":
            self._reconstruct()
        elif name == b"form":
            self._end_form()
        elif name in _SCOPED_ENDS:
            at = self._in_scope(*_SCOPED_ENDS[name])
            if at is not None:
                self._pop_to(at)
        elif name not in (b"html", b"body", b"head", b"col", b"colgroup"):
            self._end_other(name)

    def _end_form(self) -> None:
        form, self._form = self._form, None
        if form is None or not form.is_open or self._in_scope((form.name,), SCOPE) is None:
            return
        while self._stack[-1].name in _IMPLIED:
            self._pop()
        self._remove(form)

    def _end_table_part(self, name: bytes) -> None:
        inner = self._structure[-1] if self._structure else None
        if inner is None or not self._has_part(name):
            return
        if inner in CELLS:
            if name in CELLS:
                self._close_cell()
            elif name != b"caption":
                self._close_cell()
                self._end_table_part(name)
        elif inner == b"caption":
            if name in (b"caption", b"table"):
                self._close_cell()
                self._end_table_part(name)
        elif name not in CELLS and name != b"caption":
            self._pop_through(name)

    def _has_part(self, name: bytes) -> bool:
        """Return whether the innermost table has an open part of this name."""
        for found in reversed(self._structure):
            if found == name:
                return True
            if found == b"table":
                return False
        return False
