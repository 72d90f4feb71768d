"""A model of the elements that are open while Lexbor builds the tree of a page.

`parse_limits` computes from it what a page costs to parse. It follows the tree construction of the
WHATWG HTML Standard (section 13.2.6) for everything that opens or closes an element, and nothing
else. Where it cannot follow, it errs to one side.

Invariant: the model never has fewer open elements than Lexbor, but for the few of html, body, rows
and columns that no tag opens: an end tag closes an element only if it surely does so.
"""

from __future__ import annotations

from collections import defaultdict

from crawld.core.content.tag_syntax import RAW


def _names(text: str) -> frozenset[bytes]:
    return frozenset(text.encode().split())


VOID = _names(
    "area base basefont bgsound br col embed frame frameset hr image img input keygen link meta "
    "param source track wbr"
)
SINGLE = _names("html head body")
FORMATTING = _names("a b big code em font i nobr s small strike strong tt u")
HEADING = b"h1"  # h1 to h6 close each other
HEADINGS = _names("h2 h3 h4 h5 h6")
_MARKERS = _names("td th caption applet object marquee template")
FOREIGN = _names("svg math")
_INTEGRATION = _names("foreignobject desc title annotation-xml mi mo mn ms mtext")
_WALLS = _MARKERS | _INTEGRATION | {b"table", b"select"}
_TABLE_WALLS = _names("table template") | FOREIGN | _INTEGRATION
SECTIONS = _names("tbody thead tfoot")
_BETWEEN_CELLS = SECTIONS | _names("table tr colgroup")
_TABLE_PARTS = SECTIONS | _names("caption colgroup tr td th")
CLOSES_P = _names(
    "address article aside blockquote center details dialog dir div dl fieldset figcaption figure "
    "footer header hgroup main menu nav ol p search section summary ul h1 pre listing form table "
    "hr xmp plaintext li dd dt"
)
_SCOPED = (CLOSES_P - _names("table hr xmp plaintext")) | _names(
    "button applet marquee object select"
)
SPECIAL = (
    _SCOPED | _WALLS | _TABLE_PARTS | RAW | _names("frameset noscript plaintext") | FOREIGN
) - _names("dialog")
_ENDS_SELECT = _names("select input textarea keygen")
_BREAKS_OUT = _names(
    "b big blockquote body br center code dd div dl dt em embed font h1 head hr i img li listing "
    "menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var"
)
_ALONE = _names("a nobr")  # the next closes the last
_CLOSING_OTHERS = (
    CLOSES_P | _TABLE_PARTS | _ENDS_SELECT | _ALONE | _names("button option optgroup rb rp rt rtc")
)
WALLS = (
    _WALLS
    | _TABLE_PARTS
    | _names("math head frameset frame plaintext input keygen textarea noframes col")
)
"""What may ignore tags, or bounds the search of an end tag for its start."""

CLOSING_STARTS = (SPECIAL | _CLOSING_OTHERS) - FORMATTING
"""What is special, or may close an element before it opens its own."""

_RUBY = _names("rb rp rt rtc")
IMPLIED = _RUBY | _names("dd dt li optgroup option p")
_LIST_ITEM, _TERMS = _names("li"), _names("dd dt")
_ITEM_STOPS = SPECIAL - _names("address div p")
IN_HEAD = _names(
    "html head base basefont bgsound link meta noframes noscript script style template title"
)
# What opens without the active formatting elements around it.
_WITHOUT_FORMATTING = (
    (CLOSES_P | _TABLE_PARTS | _RUBY | RAW | _names("base link meta param source track template"))
    - _names("xmp")
) | _names("noscript frameset col")
HTML_NAMES = VOID | SINGLE | FORMATTING | SPECIAL | _BREAKS_OUT | _RUBY | _names("option optgroup")


_CLONE_STEPS, _COMPARED_STEPS, _ADOPTION_ROUNDS = 40, 6, 8
"""Steps of a clone and of a compared element (`parse_limits.MAX_STEPS`), and the number of searches
by the end tag of a formatting element."""


class _Element:
    """An element; `markup` is that of its attributes if it is a formatting element."""

    __slots__ = ("is_clone", "is_open", "markup", "name")

    def __init__(self, name: bytes, markup: bytes | None) -> None:
        self.name = name
        self.markup = markup
        self.is_open = True
        self.is_clone = False


class OpenElements:
    """A model of the open elements: never fewer than those of Lexbor.

    Attributes:
        certain: whether the model and Lexbor have surely read the same tags; if not, nothing is
            closed.
        in_body: whether the body has begun; text other than white space begins it too.
        clones: formatting elements that Lexbor opened again, at most.
        steps: what the tags cost so far, in units of `parse_limits.MAX_STEPS`.
    """

    def __init__(self) -> None:
        self.certain = True
        self.in_body = False
        self._stack: list[_Element] = []
        self._counts = defaultdict[bytes, int](int)
        # The list of active formatting elements, with None for a marker.
        self._formatting: list[_Element | None] = []
        self._foreign = 0
        self.steps = 0
        self.clones = 0

    def has_foreign(self) -> bool:
        """Return whether an svg or math element may be open."""
        return self._foreign > 0

    def is_foreign(self) -> bool:
        """Return whether a tag here is surely one of svg or math."""
        if not self._foreign or not self.certain:
            return False
        at = self._last(FOREIGN | _INTEGRATION)
        return at is not None and self._stack[at].name in FOREIGN

    def is_unclear(self) -> bool:
        """Return whether raw text here may be read as markup."""
        return not self.certain or self._foreign > 0 or self._counts[b"select"] > 0

    def has_table(self) -> bool:
        """Return whether a table is surely open, or may be where none is closed any more."""
        return self.certain and self._counts[b"table"] > 0

    def fosters(self) -> bool:
        """Return whether a text here may be moved before a table."""
        if not self.certain:
            return self._counts[b"table"] > 0
        return bool(self._stack) and self._stack[-1].name in _BETWEEN_CELLS

    def add_start(self, name: bytes, attributes: bytes, count: int, *, empty: bool = False) -> None:
        """Add a start tag with `count` attributes; `empty` if it ends itself with `/>`."""
        self.steps += len(self._stack)
        if not self.in_body and (self._counts[b"template"] or name not in IN_HEAD):
            self.in_body = True
        if self._foreign and self.is_foreign():
            if name not in _BREAKS_OUT:
                if not empty:
                    self._push(name, None)
                return
            self.certain = False
        if name in _INTEGRATION and name not in RAW:
            self.certain = False  # an unknown element here, but an end tag does not tell them apart
        if name in SINGLE or (empty and name in FOREIGN and self.certain):
            return
        if name == b"noscript" and not self.in_body:
            return  # it does not nest, and ends where the body begins
        self._open_html(name, attributes, count)

    def _open_html(self, name: bytes, attributes: bytes, count: int) -> None:
        if self.certain and name in _CLOSING_OTHERS and not self._close_implied(name):
            return
        if self._formatting and name not in _WITHOUT_FORMATTING:
            self.add_text()
        if name in VOID or (name in RAW and self.certain):
            return
        if name in FORMATTING:
            self.steps += len(self._formatting) * (_COMPARED_STEPS + count * count)
            self._push(name, attributes)
        else:
            self._push(name, None)

    def add_end(self, name: bytes) -> None:
        """Add an end tag."""
        stack = self._stack
        if not self.certain or not self._counts[name]:
            self.in_body = self.in_body or name in SINGLE or name == b"br"
            self.steps += len(stack)
            return
        if stack[-1].name == name:
            self._forget(self._pop())
            return
        self.steps += len(stack) * (_ADOPTION_ROUNDS if name in FORMATTING else 1)
        if self.is_foreign():
            self._close_foreign(name)
            return
        if name in FORMATTING:
            self._adopt(name)
            return
        stops = SPECIAL
        if name in _TABLE_PARTS or name == b"table":
            stops = _TABLE_WALLS
        elif name == b"template":
            stops = frozenset()
        elif name in _SCOPED:
            stops = _scope_walls(name)
        found = self._last(stops | {name})
        if found is None or stack[found].name != name:
            return
        if name == b"form":
            self._pop_while_last(IMPLIED)
            self._remove(found)
        else:
            self._pop_to(found)

    def _close_foreign(self, name: bytes) -> None:
        """Add an end tag within svg or math."""
        at, found = self._last(FOREIGN), self._last(frozenset([name]))
        if found is None or at is None or found < at:
            self.certain = False  # it may close an element around the svg
        else:
            self._pop_to(found)

    def _close_implied(self, name: bytes) -> bool:
        """Close what a start tag closes before it opens its element; return whether it opens."""
        counts = self._counts
        if counts[b"select"] and name in _ENDS_SELECT:
            self.certain = False
            return True
        if name in CLOSES_P and (found := self._in_scope(b"p")) is not None:
            self._pop_to(found)
        if name in _TABLE_PARTS or name == b"table":
            return self._close_cells(name)
        if name == b"button" and (found := self._in_scope(name)) is not None:
            self._pop_to(found)
        elif name == b"li" or name in _TERMS:
            self._close_item(name)
        else:
            self._close_last(name)
        return True

    def _close_last(self, name: bytes) -> None:
        """Close the last element if it is of a kind that cannot contain the next."""
        if name == HEADING or name == b"option":
            self._pop_if_last(frozenset([name]))
        elif name == b"optgroup":
            self._pop_if_last(frozenset([b"option"]))
        elif name in _RUBY and self._in_scope(b"ruby") is not None:
            self._pop_while_last(IMPLIED)
        elif name in _ALONE:
            self._adopt(name)

    def _in_scope(self, name: bytes) -> int | None:
        """Return the index of the innermost element of a name, None if it is out of scope."""
        found = self._last(_scope_walls(name) | {name}) if self._counts[name] else None
        return found if found is not None and self._stack[found].name == name else None

    def _close_item(self, name: bytes) -> None:
        same = _LIST_ITEM if name == b"li" else _TERMS
        found = self._last(_ITEM_STOPS | same)
        if found is not None and self._stack[found].name in same:
            self._pop_to(found)

    def _close_cells(self, name: bytes) -> bool:
        """Close what the next cell, row, section or table closes; return whether it is opened."""
        at = self._last(_TABLE_WALLS)
        if at is None or self._stack[at].name != b"table":
            if name == b"table" or at is None:
                return name == b"table"  # parts of no table are left out
            if self._stack[-1].name != b"template" and self._stack[-1].name not in _TABLE_PARTS:
                self.certain = False
            return True
        names = [element.name for element in self._stack[at + 1 : at + 4]]
        if name == b"table":
            if not any(each in (b"td", b"th", b"caption") for each in names):
                self._pop_to(at)
            return True
        kept = at + 1
        if name in (b"tr", b"td", b"th") and names[:1] and names[0] in SECTIONS:
            kept += 1
            names = names[1:]
        if name in (b"td", b"th") and names[:1] == [b"tr"]:
            kept += 1
        self._pop_to(kept, implied=True)
        return True

    def _pop_if_last(self, names: frozenset[bytes]) -> None:
        if self._stack and self._stack[-1].name in names:
            self._pop()

    def _pop_while_last(self, names: frozenset[bytes]) -> None:
        while self._stack and self._stack[-1].name in names:
            self._pop()

    def _last(self, names: frozenset[bytes]) -> int | None:
        """Return the index of the innermost element of these names."""
        stack = self._stack
        for at in range(len(stack) - 1, -1, -1):
            if stack[at].name in names:
                self.steps += len(stack) - at
                return at
        self.steps += len(stack)
        return None

    def __len__(self) -> int:
        return len(self._stack)

    def _push(self, name: bytes, markup: bytes | None) -> None:
        element = _Element(name, markup)
        self._stack.append(element)
        self._counts[name] += 1
        self._foreign += name in FOREIGN
        if markup is not None:
            self._activate(element)
        elif name in _MARKERS:
            self._formatting.append(None)

    def _pop(self) -> _Element:
        """Close the last element; a formatting element stays active."""
        element = self._stack.pop()
        element.is_open = False
        self._counts[element.name] -= 1
        self._foreign -= element.name in FOREIGN
        if element.name in _MARKERS and element.markup is None:
            formatting = self._formatting
            while formatting and formatting.pop() is not None:
                pass
        return element

    def _pop_to(self, start: int, *, implied: bool = False) -> None:
        """Close the elements from an index on; formatting elements within them open again.

        The first is closed for good, unless its closing is `implied` by another tag.
        """
        self.steps += len(self._stack) - start
        closed = None
        while len(self._stack) > start:
            closed = self._pop()
        if closed is not None and not implied:
            self._forget(closed)

    def _remove(self, index: int) -> None:
        """Close one element, and none within it."""
        element = self._stack.pop(index)
        self._counts[element.name] -= 1
        self._forget(element)

    def _adopt(self, name: bytes) -> None:
        """Close a formatting element: blocks within it stay open, what is within the last not."""
        found = self._in_scope(name)
        if found is None:
            return
        if not self._stack[found].is_clone:  # Lexbor may open a clone later than the model
            while len(self._stack) > found + 1 and self._stack[-1].name not in SPECIAL:
                self._pop()
        self._remove(found)

    def _activate(self, element: _Element) -> None:
        """Add a formatting element to the active ones; of four equal ones, the first leaves."""
        formatting, first, equal = self._formatting, 0, 0
        for at in range(len(formatting) - 1, -1, -1):
            other = formatting[at]
            if other is None:
                break
            if other.name == element.name and other.markup == element.markup:
                first, equal = at, equal + 1
        if equal >= 3:
            del formatting[first]
        formatting.append(element)

    def _forget(self, element: _Element) -> None:
        """Take a formatting element from the active ones."""
        if element.markup is not None and element in self._formatting:
            self._formatting.remove(element)

    def add_text(self) -> None:
        """Add a text, which clones the active formatting elements that were closed."""
        formatting, at = self._formatting, len(self._formatting)
        while at and (element := formatting[at - 1]) is not None and not element.is_open:
            at -= 1
        for index in range(at, len(formatting)):
            if (element := formatting[index]) is not None:
                clone = formatting[index] = _Element(element.name, element.markup)
                clone.is_clone = True
                self._stack.append(clone)
                self._counts[clone.name] += 1
                self.clones += 1
                self.steps += _CLONE_STEPS + len(clone.markup or b"")


def _scope_walls(name: bytes) -> frozenset[bytes]:
    walls = _WALLS
    if name == b"p":
        walls |= {b"button"}
    elif name == b"li":
        walls |= {b"ol", b"ul"}
    return walls | FOREIGN
