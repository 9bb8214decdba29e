"""Two machine instructions that numba does not offer: compress a vector, and fetch memory ahead of its use.

Both are written in LLVM's portable terms.  ``compressed`` is one ``vpcompressd`` with AVX-512; elsewhere LLVM
spells it out lane by lane, which is correct and slow: ask ``HAS_COMPRESS`` first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import llvmlite.binding
import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES: Final = 16
"""Single-precision numbers in a vector of 512 bits.  Arrays need this many spare elements at their end."""

HAS_COMPRESS: Final[bool] = bool(llvmlite.binding.get_host_cpu_features().get("avx512f", False))

Function = TypeVar("Function", bound=Callable[..., Any])

_FLOAT: Final = ir.FloatType()
_BYTE: Final = ir.IntType(8)
_INT: Final = ir.IntType(32)
_LONG: Final = ir.IntType(64)
_FLOATS: Final = ir.VectorType(_FLOAT, LANES)
_INTS: Final = ir.VectorType(_INT, LANES)
_BITS: Final = ir.VectorType(ir.IntType(1), LANES)


def compiled(function: Function) -> Function:
    """Machine code for this very processor, free to reorder sums: only good for a bound."""
    return cast("Function", numba.njit(fastmath=True, nogil=True, error_model="numpy")(function))


def inlined(function: Function) -> Function:
    """Code that becomes part of its callers (left to itself, LLVM passes whole arrays on the stack instead)."""
    return cast("Function", numba.njit(fastmath=True, forceinline=True, error_model="numpy")(function))


def _typed_intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    return cast("Callable[..., Any]", intrinsic(function))


@_typed_intrinsic
def prefetch(_context: Any, array: Any, index: Any) -> Any:
    """``prefetch(array, index)`` brings the cache line of ``array[index]`` near; never faults."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature.args[0], arguments[0], arguments[1], _BYTE)
        kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), _INT, _INT, _INT])
        instruction = _instruction(builder, kind, "llvm.prefetch.p0")
        read, every_cache, data = (ir.Constant(_INT, value) for value in (0, 3, 1))
        builder.call(instruction, [address, read, every_cache, data])
        return context.get_dummy_value()

    return types.void(array, index), generate


@_typed_intrinsic
def write_near(
    _context: Any, xs: Any, ys: Any, numbers: Any, first: Any, left: Any, x: Any, y: Any, r2: Any, out: Any, at: Any
) -> Any:
    """Tests up to 16 points at once.

    Of the points ``first`` to ``first + min(left, 16)``, the numbers of those with a squared distance of at most
    ``r2`` from ``(x, y)`` are written to ``out[at:]`` without gaps.  Returns how many; the rest of the 16 elements
    written is rubbish, to be overwritten by the next call.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first, left, x, y, r2 = arguments[3:8]

        def address(argument: int, index: Any, kind: Any) -> Any:
            return _address(context, builder, signature.args[argument], arguments[argument], index, kind)

        def load(argument: int, kind: Any) -> Any:
            loaded = builder.load(address(argument, first, kind))
            loaded.align = 4
            return loaded

        dx = builder.fsub(load(0, _FLOATS), _splat(builder, x, _FLOATS))
        dy = builder.fsub(load(1, _FLOATS), _splat(builder, y, _FLOATS))
        fused = ("contract",)
        squared = builder.fadd(builder.fmul(dx, dx, flags=fused), builder.fmul(dy, dy, flags=fused), flags=fused)
        near = builder.fcmp_ordered("<=", squared, _splat(builder, r2, _FLOATS))
        lanes = ir.Constant(_INTS, list(range(LANES)))
        near = builder.and_(near, builder.icmp_signed("<", lanes, _splat(builder, builder.trunc(left, _INT), _INTS)))
        kind = ir.FunctionType(_INTS, [_INTS, _BITS, _INTS])
        compress = _instruction(builder, kind, f"llvm.experimental.vector.compress.v{LANES}i32")
        written = builder.call(compress, [load(2, _INTS), near, ir.Constant(_INTS, ir.Undefined)])
        builder.store(written, address(8, arguments[9], _INTS)).align = 4
        return builder.zext(builder.ctpop(builder.bitcast(near, ir.IntType(LANES))), _LONG)

    return types.int64(xs, ys, numbers, first, left, x, y, r2, out, at), generate


def _address(context: Any, builder: Any, kind: Any, array: Any, index: Any, element: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), element.as_pointer())


def _splat(builder: Any, value: Any, kind: Any) -> Any:
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(_INT, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(_INTS, [0] * LANES))


def _instruction(builder: Any, kind: Any, name: str) -> Any:
    declare: Callable[..., Any] = cgutils.get_or_insert_function
    return declare(builder.module, kind, name)
