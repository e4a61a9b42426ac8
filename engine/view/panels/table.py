"""A table of any length: sorted by a click, filtered by text, copied as CSV.

Data are columns (arrays or lists of one length), so that a million rows sort in numpy; only rows on
screen are formatted and drawn.
"""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from imgui_bundle import imgui

from engine.view.marks import mark
from engine.view.panels.rows import rows_in_sight

FITTED_ROWS = 32  # that columns are made wide enough for when the data change


@dataclass(frozen=True, slots=True)
class Column:
    """`unit` stands in the header; `format` is a format spec (",d", ".2f") or a function; text
    columns are aligned left and are what the filter looks at. `tooltip` explains the header."""

    name: str
    unit: str = ""
    format: str | Callable[[Any], str] = ""
    text: bool = False
    tooltip: str = ""

    @property
    def header(self) -> str:
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    def show(self, value: Any) -> str:
        if value is None or value != value:  # a number that is none
            return "-"
        return self.format(value) if callable(self.format) else format(value, self.format)


class Table:
    """`selected` is a row's index in the data, kept while the data keep their length."""

    def __init__(self, name: str, columns: Sequence[Column], filterable: bool = True) -> None:
        self.name = name
        self.columns = tuple(columns)
        self.filterable = filterable
        self.filter = ""
        self.selected: int | None = None
        self.data: tuple[Sequence[Any], ...] = tuple([] for _ in columns)
        self.order = np.zeros(0, np.int64)  # rows as shown
        self._sort: tuple[int, bool] | None = None  # (column, descending)
        self._shown: dict[int, list[str]] = {}
        self._keys: dict[int, Any] = {}
        self._scroll_to: int | None = None
        self._widest = [0] * len(self.columns)  # characters, of the rows that were looked at
        self._refit = False
        self._font: tuple[float, int] = (0.0, 0)  # of the `_widths`
        self._widths: dict[str, float] = {}

    # ---- data -------------------------------------------------------------------------------

    def set_columns(self, data: Sequence[Sequence[Any]]) -> None:
        """One sequence per column, all of one length. ValueError otherwise."""
        if len(data) != len(self.columns) or len({len(column) for column in data}) > 1:
            raise ValueError(f"{self.name}: {len(self.columns)} columns of one length are needed")
        self.data = tuple(data)
        if self.selected is not None and self.selected >= len(self):
            self.selected = None
        self._shown.clear()
        self._keys.clear()
        self._arrange()
        self._look_at_widths()

    def _look_at_widths(self) -> None:
        """imgui fits columns once, when they appear: they are fitted again where texts have grown
        since, as when numbers take the place of dashes."""
        rows = [self._row_texts(row) for row in range(min(len(self), FITTED_ROWS))]
        for index, texts in enumerate(zip(*rows, strict=True)):
            widest = max(map(len, texts))
            self._refit |= widest > self._widest[index]
            self._widest[index] = max(widest, self._widest[index])

    def set_rows(self, rows: Sequence[Sequence[Any]]) -> None:
        """The same from rows, for short tables."""
        self.set_columns([list(column) for column in zip(*rows, strict=True)] or self._empty())

    def _empty(self) -> list[list[Any]]:
        return [[] for _ in self.columns]

    def __len__(self) -> int:
        return len(self.data[0])

    def sort_by(self, column: int, descending: bool = False) -> None:
        """As a click on the header does; rows without a value come last either way."""
        self._sort = (column, descending)
        self._arrange()

    def _sort_key(self, column: int) -> Any:
        """Numbers as they are, anything else as text; missing numbers are NaN."""
        if column not in self._keys:
            values = self.data[column]
            if self.columns[column].text:
                key = np.asarray([str(value).lower() for value in values], np.str_)
            else:
                if not isinstance(values, np.ndarray):
                    values = [np.nan if value is None else value for value in values]
                key = np.asarray(values)
                if key.dtype == object:
                    key = key.astype(np.float64)
            self._keys[column] = key
        return self._keys[column]

    def _arrange(self) -> None:
        rows = np.arange(len(self))
        if self.filter:
            rows = rows[self._matches()]
        if self._sort is not None and len(rows):
            column, descending = self._sort
            key = self._sort_key(column)[rows]
            order = np.argsort(key, kind="stable")
            if descending:
                # Reversed twice, so that equal rows stay in the data's order.
                order = (len(rows) - 1 - np.argsort(key[::-1], kind="stable"))[::-1]
                if key.dtype.kind == "f":
                    missing = np.isnan(key[order])
                    order = np.concatenate([order[~missing], order[missing]])
            rows = rows[order]
        self.order = rows

    def _matches(self) -> Any:
        wanted = self.filter.lower()
        found = np.zeros(len(self), bool)
        for index, column in enumerate(self.columns):
            if column.text:
                found |= np.char.find(self._sort_key(index), wanted) >= 0
        return found

    def csv(self) -> str:
        """All rows as shown (sorted, filtered), values unrounded, with a header line."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([column.header for column in self.columns])
        for row in self.order:
            values = (column[int(row)] for column in self.data)
            writer.writerow(["" if value is None else value for value in values])
        return out.getvalue()

    def select(self, row: int | None) -> None:
        """Selects a row of the data and scrolls to it."""
        self.selected = self._scroll_to = row

    # ---- drawing ----------------------------------------------------------------------------

    def draw(self, size: tuple[float, float] = (0.0, 0.0)) -> int | None:
        """Draws into the current window; `size` 0 is all that is left. Returns the data's index of
        a row that was clicked in this frame."""
        self._draw_toolbar()
        flags = imgui.TableFlags_
        if not imgui.begin_table(
            f"##{self.name}",
            len(self.columns),
            flags.sortable
            | flags.sort_tristate
            | flags.resizable
            | flags.reorderable
            | flags.hideable
            | flags.row_bg
            | flags.scroll_y
            | flags.scroll_x
            | flags.sizing_fixed_fit
            | flags.borders_inner_v
            | flags.no_saved_settings,
            imgui.ImVec2(*size),
        ):
            return None
        imgui.table_setup_scroll_freeze(1, 1)
        for column in self.columns:
            descending = imgui.TableColumnFlags_.prefer_sort_descending
            imgui.table_setup_column(column.header, 0 if column.text else descending)
        if self._refit:
            imgui.internal.table_set_column_width_auto_all(imgui.internal.get_current_table())
            self._refit = False
        self._draw_headers()
        self._take_sort()
        clicked = self._draw_rows()
        imgui.end_table()
        return clicked

    def _draw_toolbar(self) -> None:
        if self.filterable:
            imgui.set_next_item_width(imgui.get_font_size() * 10)
            changed, text = imgui.input_text_with_hint(
                f"##filter {self.name}", "filter", self.filter
            )
            mark(f"{self.name}.filter")
            if changed:
                self.filter = text
                self._arrange()
            imgui.same_line()
        if imgui.small_button(f"Copy CSV##{self.name}"):
            imgui.set_clipboard_text(self.csv())
        mark(f"{self.name}.copy")
        imgui.same_line()
        total = f"{len(self):,} row{'' if len(self) == 1 else 's'}"
        filtered = f"{len(self.order):,} of {total}" if self.filter else total
        imgui.text_disabled(filtered)

    def _draw_headers(self) -> None:
        imgui.table_next_row(imgui.TableRowFlags_.headers)
        for index, column in enumerate(self.columns):
            if not imgui.table_set_column_index(index):
                continue
            imgui.table_header(column.header)
            mark(f"{self.name}.header.{column.name}")
            if column.tooltip:
                imgui.set_item_tooltip(column.tooltip)

    def _take_sort(self) -> None:
        specs = imgui.table_get_sort_specs()
        if specs is None or not specs.specs_dirty:
            return
        specs.specs_dirty = False
        if specs.specs_count:
            first = specs.get_specs(0)
            down = first.get_sort_direction() == imgui.SortDirection.descending
            self.sort_by(first.column_index, down)
        else:
            self._sort = None
            self._arrange()

    def _row_texts(self, row: int) -> list[str]:
        texts = self._shown.get(row)
        if texts is None:
            if len(self._shown) > 4096:
                self._shown.clear()
            texts = [c.show(d[row]) for c, d in zip(self.columns, self.data, strict=True)]
            self._shown[row] = texts
        return texts

    def _width(self, text: str) -> float:
        """Of a text in pixels. Most of a table's numbers are the same from frame to frame."""
        font = (imgui.get_font_size(), imgui.get_font().font_id)
        if font != self._font or len(self._widths) > 4096:
            self._font, self._widths = font, {}
        width = self._widths.get(text)
        if width is None:
            width = self._widths[text] = imgui.calc_text_size(text).x
        return width

    def _draw_rows(self) -> int | None:
        clicked = None
        height = imgui.get_text_line_height() + 2 * imgui.get_style().cell_padding.y
        if self._scroll_to is not None:
            places = np.flatnonzero(self.order == self._scroll_to)
            if len(places):
                visible = imgui.get_window_height() - 2 * height
                imgui.set_scroll_y(max(0.0, float(places[0]) * height - 0.5 * visible))
            self._scroll_to = None
        span = imgui.SelectableFlags_.span_all_columns | imgui.SelectableFlags_.allow_overlap
        sides: dict[int, tuple[float, float]] = {}  # of the columns of numbers: left and right
        for place in rows_in_sight(len(self.order), height):
            row = int(self.order[place])
            imgui.table_next_row()
            for index, text in enumerate(self._row_texts(row)):
                if not imgui.table_set_column_index(index):
                    continue
                if not self.columns[index].text:
                    if index not in sides:
                        left = imgui.get_cursor_pos_x()
                        sides[index] = (left, left + imgui.get_content_region_avail().x)
                    left, right = sides[index]
                    start = right - self._width(text)
                    if start > left:
                        imgui.set_cursor_pos_x(start)
                imgui.text_unformatted(text)
            if imgui.table_set_column_index(0):
                pressed, _ = imgui.selectable(f"##{row}", row == self.selected, span)
                mark(f"{self.name}.row.{place}")
                if pressed:
                    self.selected = clicked = row
        return clicked
