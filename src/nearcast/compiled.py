"""The one door to numba: typed decorators, so that kernels stay checked Python for everyone else.

numba takes more than a second to import; only modules that hold kernels import this one, and only code that
matches or simulates imports them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba import carray  # type: ignore[attr-defined]
from numba.core import types
from numba.core.caching import FunctionCache
from numba.extending import intrinsic

from nearcast.model import geometry

Addresses = np.ndarray[tuple[int, int], np.dtype[np.int64]]
"""Where arrays lie: a row for each, its address and its shape.

numba takes every array of an argument apart anew on each call, which costs more than many a kernel does.  A kernel that is
called for single events takes this one array instead, and puts the others together again (``line``, ``table``, ``cube``).
"""

P = ParamSpec("P")
R = TypeVar("R")

# Kernels neither allocate nor keep arrays, so numba need not count references to them (``_nrt``): in the inner loops
# the atomic counting would cost more than the work.  No fastmath: comparisons that decide must not be reordered.
_OPTIONS: Final[dict[str, Any]] = {"error_model": "numpy", "_nrt": False}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile to machine code on first use, and keep the result on disk for the next process."""
    return _cached(function, _OPTIONS)


def kernel_making_arrays(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that makes arrays out of addresses; numba lets it do so only if it may count references."""
    return _cached(function, {**_OPTIONS, "_nrt": True})


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile as a part of its callers (left to itself, LLVM passes whole arrays on the stack instead)."""
    compiled: Callable[P, R] = numba.njit(forceinline=True, **_OPTIONS)(function)
    return compiled


def inlined_making_arrays(function: Callable[P, R]) -> Callable[P, R]:
    """A part of a kernel that makes arrays out of addresses."""
    compiled: Callable[P, R] = numba.njit(forceinline=True, **{**_OPTIONS, "_nrt": True})(function)
    return compiled


def _pointer(_context: Any, _address: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


pointer: Final = cast("Callable[[int], Any]", intrinsic(_pointer))
"""The address that a number stands for, inside kernels that make arrays."""


def addresses_for(arrays: int) -> Addresses:
    """Room for the addresses of so many arrays."""
    return np.zeros((arrays, 4), np.int64)


def write_addresses(addresses: Addresses, first: int, arrays: Iterable[Any]) -> None:
    """From row ``first`` on; good as long as somebody keeps the arrays alive."""
    for row, array in enumerate(arrays, first):
        assert array.flags.c_contiguous
        addresses[row, 0] = array.__array_interface__["data"][0]
        addresses[row, 1 : 1 + array.ndim] = array.shape


@inlined_making_arrays
def line(a: Any, row: int, dtype: Any) -> Any:
    """The array of one dimension whose address stands in a row."""
    return carray(pointer(a[row, 0]), (a[row, 1],), dtype)


@inlined_making_arrays
def table(a: Any, row: int, dtype: Any) -> Any:
    """The array of two dimensions whose address stands in a row."""
    return carray(pointer(a[row, 0]), (a[row, 1], a[row, 2]), dtype)


@inlined_making_arrays
def cube(a: Any, row: int, dtype: Any) -> Any:
    """The array of three dimensions whose address stands in a row."""
    return carray(pointer(a[row, 0]), (a[row, 1], a[row, 2], a[row, 3]), dtype)


def is_kept(function: Callable[..., object]) -> bool:
    """Whether a kernel, made of the present source, is on disk: then it need not be compiled again."""
    compiled: Any = function
    return bool(compiled._cache._cache_file._load_index())  # noqa: SLF001 - numba has no public door to its cache


def _cached(function: Callable[P, R], options: dict[str, Any]) -> Callable[P, R]:
    compiled: Any = numba.njit(nogil=True, **options)(function)
    compiled._cache = _KernelCache(function)  # noqa: SLF001 - numba has no public door to its cache
    typed: Callable[P, R] = compiled
    return typed


class _KernelCache(FunctionCache):
    """Compiled code is as old as the oldest source it was made of.

    numba looks only at the file of the kernel itself; but what is inlined into it stands in other files of its folder
    as well, and ``matching.vector`` lets the environment choose among two kernels.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        initialise: Callable[..., None] = super().__init__
        initialise(function)
        self._cache_file._source_stamp = _sources(Path(function.__code__.co_filename).parent)  # noqa: SLF001


def _sources(room: Path) -> tuple[object, ...]:
    files = [*sorted(room.glob("*.py")), Path(__file__), Path(geometry.__file__)]
    stamps = ((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    return (os.environ.get("NEARCAST_SCALAR", ""), *stamps)
