"""A tree whose nodes are asked for when they are opened: a million nodes open at once.

The rows that are unfolded lie in one flat list; opening a node puts its children behind it, closing
takes all that is deeper out again. Only rows on screen are drawn.
"""

from collections.abc import Hashable, Sequence
from typing import Any, Protocol

from imgui_bundle import imgui

from engine.view.marks import mark, mark_region
from engine.view.panels.rows import rows_in_sight

Key = Hashable
LABEL_SHARE = 0.55  # the label column's first width, as a share of the tree's
INDENT_SHARE = 0.6  # of the label column, at most


class TreeProvider(Protocol):
    """What a tree shows. Keys name nodes; the same key may stand at several places."""

    columns: Sequence[str]  # headers of the columns behind the label

    def roots(self) -> Sequence[Key]: ...

    def children(self, key: Any) -> Sequence[Key]: ...

    def has_children(self, key: Any) -> bool:
        """Cheap: asked for every row on screen."""
        ...

    def label(self, key: Any) -> str: ...

    def cells(self, key: Any) -> Sequence[str]: ...


class LazyTree:
    """`selected` is the key at the selected row, None without one."""

    def __init__(self, name: str, provider: TreeProvider) -> None:
        self.name = name
        self.reset(provider)

    def reset(self, provider: TreeProvider) -> None:
        """Shows another tree, folded up."""
        self._provider = provider
        self.keys: list[Key] = list(provider.roots())
        self.depths: list[int] = [0] * len(self.keys)
        self._open: list[bool] = [False] * len(self.keys)
        self._texts: dict[Key, tuple[str, Sequence[str], bool]] = {}
        self._row: int | None = None
        self._scroll_to: int | None = None

    @property
    def selected(self) -> Any:
        return None if self._row is None else self.keys[self._row]

    # ---- folding ----------------------------------------------------------------------------

    def expand(self, row: int) -> None:
        if self._open[row]:
            return
        children = list(self._provider.children(self.keys[row]))
        self._open[row] = True
        at = row + 1
        self.keys[at:at] = children
        self.depths[at:at] = [self.depths[row] + 1] * len(children)
        self._open[at:at] = [False] * len(children)
        if self._row is not None and self._row > row:
            self._row += len(children)

    def collapse(self, row: int) -> None:
        """What was open below is forgotten; a selection inside moves to the closed node."""
        if not self._open[row]:
            return
        self._open[row] = False
        end = row + 1
        while end < len(self.depths) and self.depths[end] > self.depths[row]:
            end += 1
        for column in (self.keys, self.depths, self._open):
            del column[row + 1 : end]
        if self._row is not None and self._row > row:
            self._row = row if self._row < end else self._row - (end - row - 1)

    def _parent(self, row: int) -> int | None:
        depth = self.depths[row]
        while row > 0 and self.depths[row] >= depth:
            row -= 1
        return row if self.depths[row] < depth else None

    def reveal(self, path: Sequence[Key]) -> bool:
        """Opens the nodes of a path from a root, selects its end and scrolls there. False, with as
        much open as there is, when the path leads nowhere."""
        row, depth = -1, 0
        for depth, key in enumerate(path):
            if row >= 0:
                self.expand(row)
            found = self._find(key, row + 1, depth)
            if found is None:
                return False
            row = found
        if row < 0:
            return False
        self._row = self._scroll_to = row
        return True

    def _find(self, key: Key, start: int, depth: int) -> int | None:
        """The row of a key among the siblings that begin at `start`."""
        at = start
        while True:
            try:
                at = self.keys.index(key, at)
            except ValueError:
                return None
            if self.depths[at] == depth:
                # Still below the same parent: nothing in between is less deep.
                below = depth == 0 or min(self.depths[start : at + 1]) >= depth
                return at if below else None
            at += 1

    # ---- keyboard ---------------------------------------------------------------------------

    def press(self, key: str) -> bool:
        """ "up", "down", "left" (close, or to the parent), "right" (open, or to the first child).
        True when something changed."""
        if not self.keys:
            return False
        if self._row is None:
            self._row = self._scroll_to = 0
            return True
        row = self._row
        before = (row, self._open[row])
        if key == "up":
            self._row = max(0, row - 1)
        elif key == "down":
            self._row = min(len(self.keys) - 1, row + 1)
        elif key == "left":
            parent = self._parent(row)
            if self._open[row]:
                self.collapse(row)
            elif parent is not None:
                self._row = parent
        elif key == "right" and self._provider.has_children(self.keys[row]):
            if self._open[row]:
                self._row = row + 1
            else:
                self.expand(row)
        assert self._row is not None
        self._scroll_to = self._row
        return (self._row, self._open[self._row]) != before

    # ---- drawing ----------------------------------------------------------------------------

    def draw(self, size: tuple[float, float] = (0.0, 0.0)) -> bool:
        """Draws into the current window; `size` 0 is all that is left. True when the user selected
        another row in this frame."""
        flags = imgui.TableFlags_
        width = size[0] or imgui.get_content_region_avail().x
        if not imgui.begin_table(
            f"##{self.name}",
            1 + len(self._provider.columns),
            flags.row_bg
            | flags.scroll_y
            | flags.scroll_x
            | flags.resizable
            | flags.sizing_fixed_fit
            | flags.borders_inner_v
            | flags.no_saved_settings,
            imgui.ImVec2(*size),
        ):
            return False
        imgui.table_setup_scroll_freeze(1, 1)
        imgui.table_setup_column("node", imgui.TableColumnFlags_.width_fixed, LABEL_SHARE * width)
        for column in self._provider.columns:
            imgui.table_setup_column(column)
        imgui.table_headers_row()
        changed = self._take_keys()
        changed |= self._draw_rows()
        imgui.end_table()
        return changed

    def _take_keys(self) -> bool:
        if not imgui.is_window_focused() or imgui.get_io().want_text_input:
            return False
        before = self._row
        for name in ("up", "down", "left", "right"):
            if imgui.is_key_pressed(getattr(imgui.Key, f"{name}_arrow")):
                self.press(name)
        return self._row != before

    def _texts_of(self, key: Key) -> tuple[str, Sequence[str], bool]:
        if key not in self._texts:
            if len(self._texts) > 4096:
                self._texts.clear()
            provider = self._provider
            label = provider.label(key).replace("##", "# #")  # imgui would hide what follows
            self._texts[key] = label, provider.cells(key), provider.has_children(key)
        return self._texts[key]

    def refresh(self) -> None:
        """Asks for labels and cells anew: the values behind them changed."""
        self._texts.clear()

    def _draw_rows(self) -> bool:
        height = imgui.get_text_line_height() + 2 * imgui.get_style().cell_padding.y
        if self._scroll_to is not None:
            self._scroll(self._scroll_to, height)
            self._scroll_to = None
        toggled: int | None = None
        selected: int | None = None
        # Where the deepest row would leave no room for its label, all move closer together.
        most = INDENT_SHARE * imgui.get_column_width(0) / max(1, max(self.depths, default=0))
        indent = min(imgui.get_style().indent_spacing, most)
        flag = imgui.TreeNodeFlags_
        base = flag.no_tree_push_on_open | flag.span_all_columns | flag.open_on_arrow
        base |= flag.open_on_double_click
        leaf = base | flag.leaf
        for row in rows_in_sight(len(self.keys), height):
            label, cells, inner = self._texts_of(self.keys[row])
            imgui.table_next_row()
            imgui.table_set_column_index(0)
            imgui.set_cursor_pos_x(imgui.get_cursor_pos_x() + indent * self.depths[row])
            flags = base if inner else leaf
            if row == self._row:
                flags |= flag.selected
            imgui.set_next_item_open(self._open[row])
            place = imgui.get_cursor_screen_pos()
            imgui.tree_node_ex(f"{label}###{row}", flags)
            mark(f"{self.name}.row.{row}")
            if inner:
                side = imgui.get_font_size()
                mark_region(
                    f"{self.name}.arrow.{row}",
                    place,
                    imgui.ImVec2(place.x + side, place.y + side),
                )
            if inner and imgui.is_item_toggled_open():
                toggled = row
            elif imgui.is_item_clicked():
                selected = row
            for index, text in enumerate(cells):
                if imgui.table_set_column_index(1 + index):
                    imgui.text_unformatted(text)
        # After the loop, which goes by the rows as they were.
        moved = selected is not None and selected != self._row
        if selected is not None:
            self._row = selected
        if toggled is not None:
            (self.collapse if self._open[toggled] else self.expand)(toggled)
        return moved

    def _scroll(self, row: int, height: float) -> None:
        """Moves no further than it takes to see the row; far away ones come to the middle."""
        top = imgui.get_scroll_y()
        visible = imgui.get_window_height() - 2.5 * height
        place = row * height
        if top <= place <= top + visible - height:
            return
        near = top - 2 * height <= place <= top + visible + height
        if not near:
            place -= 0.5 * visible
        elif place > top:
            place -= visible - height
        imgui.set_scroll_y(max(0.0, place))
