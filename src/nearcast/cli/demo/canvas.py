"""A small map of dots: every character is a braille cell of two by four dots, in the style of what was drawn last."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.text import Text

_FIRST: Final = 0x2800
# Bit of the dot in column 0 or 1, from the top row down.
_BITS: Final = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]], np.uint8)


class Canvas:
    """So many characters for a stretch of land, given in metres east and north of some point."""

    def __init__(self, columns: int, rows: int, west: float, south: float, east: float, north: float) -> None:
        self.columns, self.rows = columns, rows
        # One scale for both axes, so that a circle is round: dots are square, as two by four fill a character.
        self._scale = min(2 * columns / (east - west), 4 * rows / (north - south))
        self._middle = (west + east) / 2, (south + north) / 2
        self._dots: NDArray[np.uint8] = np.zeros((rows, columns), np.uint8)
        self._styles: NDArray[np.int16] = np.zeros((rows, columns), np.int16)
        self._letters: dict[tuple[int, int], str] = {}
        self._known = [""]

    def dots(self, east: ArrayLike, north: ArrayLike, style: str) -> None:
        x, y = self._place(east, north)
        inside = (x >= 0) & (x < 2 * self.columns) & (y >= 0) & (y < 4 * self.rows)
        x, y = x[inside], y[inside]
        np.bitwise_or.at(self._dots, (y // 4, x // 2), _BITS[y % 4, x % 2])
        self._styles[y // 4, x // 2] = self._number(style)

    def circle(self, east: float, north: float, radius: float, style: str) -> None:
        angles = np.linspace(0, 2 * math.pi, max(24, int(8 * radius * self._scale)))
        self.dots(east + radius * np.cos(angles), north + radius * np.sin(angles), style)

    def text(self, east: float, north: float, text: str, style: str) -> None:
        """Letters on top of the dots, the first one at this place."""
        x, y = self._place([east], [north])
        row, column = int(y[0]) // 4, int(x[0]) // 2
        for offset, letter in enumerate(text):
            if 0 <= row < self.rows and 0 <= column + offset < self.columns:
                self._letters[row, column + offset] = letter
                self._styles[row, column + offset] = self._number(style)

    def lines(self) -> list[Text]:
        return [self._line(row) for row in range(self.rows)]

    def _line(self, row: int) -> Text:
        line = Text(no_wrap=True)
        for column in range(self.columns):
            letter = self._letters.get((row, column)) or chr(_FIRST + int(self._dots[row, column]))
            line.append(letter, self._known[self._styles[row, column]])
        return line

    def _place(self, east: ArrayLike, north: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        x = (np.asarray(east, np.float64) - self._middle[0]) * self._scale + self.columns
        y = (self._middle[1] - np.asarray(north, np.float64)) * self._scale + 2 * self.rows
        return np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)

    def _number(self, style: str) -> int:
        if style not in self._known:
            self._known.append(style)
        return self._known.index(style)
