"""The open and the active elements of `formatting_model`, and the algorithms that clone them.

Source: WHATWG HTML Standard 13.2.4.2, 13.2.4.3 and 13.2.6.4.7.
"""

from __future__ import annotations

from crawld.core.content.open_elements import HEADINGS, SECTIONS, SPECIAL

HEADING_NAMES = HEADINGS | {b"h1"}
ALL_SPECIAL = SPECIAL | HEADING_NAMES
CELLS = frozenset((b"td", b"th"))
STRUCTURE = SECTIONS | CELLS | {b"tr", b"caption", b"table"}
ROWS = SECTIONS | {b"table", b"tr"}
SCOPE = CELLS | {b"table", b"caption"}
BUTTON_SCOPE = SCOPE | {b"button"}

_ROUNDS, _INNER = 8, 3
_ITEM_STOPS = ALL_SPECIAL - {b"address", b"div", b"p"}


class OpenElement:
    """An open or active element; `markup` and `memory_bytes` are those of a formatting element."""

    __slots__ = ("is_open", "markup", "memory_bytes", "name")

    def __init__(self, name: bytes, markup: bytes | None = None, memory_bytes: int = 0) -> None:
        self.name = name
        self.markup = markup
        self.memory_bytes = memory_bytes
        self.is_open = True


class FormattingStack:
    """The open elements and the active formatting elements.

    Attributes:
        cloned_bytes: memory of the clones that were made.
        steps: how many elements were looked at.
    """

    def __init__(self) -> None:
        self.cloned_bytes = 0
        self.steps = 0
        self._stack: list[OpenElement] = []
        self._structure: list[bytes] = []
        self._active: list[OpenElement | None] = []  # None is a marker

    @property
    def open_names(self) -> list[bytes]:
        """The names of the open elements, outermost first, without html and body."""
        return [element.name for element in self._stack]

    # --- the stack of open elements --------------------------------------------------------------

    def _push(self, name: bytes) -> OpenElement:
        element = OpenElement(name)
        self._stack.append(element)
        if name in STRUCTURE:
            self._structure.append(name)
        return element

    def _pop(self) -> OpenElement:
        element = self._stack.pop()
        element.is_open = False
        if element.name in STRUCTURE:
            self._structure.pop()
        return element

    def _pop_to(self, at: int) -> None:
        while len(self._stack) > at:
            self._pop()

    def _pop_through(self, name: bytes) -> None:
        while self._pop().name != name:
            pass

    def _remove(self, element: OpenElement) -> None:
        self.steps += len(self._stack)
        self._stack.remove(element)
        element.is_open = False

    def _clear_to_structure(self) -> None:
        while self._stack[-1].name not in STRUCTURE:
            self._pop()

    def _close_cell(self) -> None:
        """Close the innermost cell or caption, with the elements that were active within it."""
        self._pop_through(self._structure[-1])
        while self._active and self._active.pop() is not None:
            pass

    def _is_in_rows(self) -> bool:
        return bool(self._structure) and self._structure[-1] in ROWS

    def _in_scope(
        self, names: frozenset[bytes] | tuple[bytes, ...], walls: frozenset[bytes]
    ) -> int | None:
        """Return the index of the innermost element of these names, None if a wall is within it."""
        for at in range(len(self._stack) - 1, -1, -1):
            self.steps += 1
            name = self._stack[at].name
            if name in names:
                return at
            if name in walls:
                return None
        return None

    def _close_p(self) -> None:
        at = self._in_scope((b"p",), BUTTON_SCOPE)
        if at is not None:
            self._pop_to(at)

    def _close_item(self, names: frozenset[bytes] | tuple[bytes, ...]) -> None:
        at = self._in_scope(names, _ITEM_STOPS - frozenset(names))
        if at is not None:
            self._pop_to(at)

    # --- the active formatting elements ----------------------------------------------------------

    def _last_active(self, name: bytes) -> OpenElement | None:
        for element in reversed(self._active):
            self.steps += 1
            if element is None or element.name == name:
                return element
        return None

    def _reconstruct(self) -> None:
        active, at = self._active, len(self._active)
        while at and (element := active[at - 1]) is not None and not element.is_open:
            at -= 1
        for index in range(at, len(active)):
            element = active[index]
            if element is not None:
                active[index] = clone = self._clone(element)
                self._stack.append(clone)

    def _clone(self, element: OpenElement) -> OpenElement:
        self.steps += 1
        self.cloned_bytes += element.memory_bytes
        return OpenElement(element.name, element.markup, element.memory_bytes)

    def _adopt(self, name: bytes) -> None:
        """Close a formatting element as the adoption agency does."""
        stack, active = self._stack, self._active
        if stack and stack[-1].name == name and stack[-1] not in active:
            self._pop()
            return
        for _ in range(_ROUNDS):
            element = self._last_active(name)
            if element is None:
                self._end_other(name)
                return
            self.steps += len(active)
            if not element.is_open:
                active.remove(element)
                return
            at = stack.index(element)
            self.steps += len(stack)
            if any(each.name in SCOPE for each in stack[at:]):
                return
            within = range(at + 1, len(stack))
            block_at = next((k for k in within if stack[k].name in ALL_SPECIAL), None)
            if block_at is None:
                self._pop_to(at)
                active.remove(element)
                return
            self._adopt_once(element, at, block_at)

    def _adopt_once(self, element: OpenElement, at: int, block_at: int) -> None:
        """Move what is within a formatting element out of it, to its furthest block."""
        stack, active = self._stack, self._active
        block = stack[block_at]
        before: OpenElement = element
        is_first = True
        for count, index in enumerate(range(block_at - 1, at, -1), 1):
            node = stack[index]
            if count > _INNER and node in active:
                active.remove(node)
            if node not in active:
                self.steps += len(stack)
                node.is_open = False
                del stack[index]
                continue
            clone = self._clone(node)
            node.is_open = False
            active[active.index(node)] = stack[index] = clone
            if is_first:
                before = clone
            is_first = False
        clone = self._clone(element)
        # The new one is active after the last of the others, or in the place of the old one.
        active.insert(active.index(before) + 1, clone)
        active.remove(element)
        self._remove(element)
        stack.insert(stack.index(block) + 1, clone)

    def _end_other(self, name: bytes) -> None:
        for at in range(len(self._stack) - 1, -1, -1):
            self.steps += 1
            found = self._stack[at].name
            if found == name:
                self._pop_to(at)
                return
            if found in ALL_SPECIAL:
                return
