"""The vector step of the bare kernel: sixteen distances at once, and those that are near written without gaps.

Only good where the processor can compress vectors: ask ``HAS_COMPRESS`` of ``matching.vector``, which also has the
pieces of which this is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba.core import types

from nearcast.matching.vector import BITS, FLOATS, INT, INTS, LANES, LONG, address_of, declared, splat, typed_intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Machine code for this very processor, free to reorder sums: only good for a bound."""
    return cast("Function", numba.njit(fastmath=True, nogil=True, error_model="numpy")(function))


def inlined(function: Function) -> Function:
    """Code that becomes part of its callers (left to itself, LLVM passes whole arrays on the stack instead)."""
    return cast("Function", numba.njit(fastmath=True, forceinline=True, error_model="numpy")(function))


@typed_intrinsic
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
            return address_of(context, builder, signature.args[argument], arguments[argument], index, kind)

        def load(argument: int, kind: Any) -> Any:
            loaded = builder.load(address(argument, first, kind))
            loaded.align = 4
            return loaded

        dx = builder.fsub(load(0, FLOATS), splat(builder, x, FLOATS))
        dy = builder.fsub(load(1, FLOATS), splat(builder, y, FLOATS))
        fused = ("contract",)
        squared = builder.fadd(builder.fmul(dx, dx, flags=fused), builder.fmul(dy, dy, flags=fused), flags=fused)
        near = builder.fcmp_ordered("<=", squared, splat(builder, r2, FLOATS))
        lanes = ir.Constant(INTS, list(range(LANES)))
        near = builder.and_(near, builder.icmp_signed("<", lanes, splat(builder, builder.trunc(left, INT), INTS)))
        kind = ir.FunctionType(INTS, [INTS, BITS, INTS])
        compress = declared(builder, kind, f"llvm.experimental.vector.compress.v{LANES}i32")
        written = builder.call(compress, [load(2, INTS), near, ir.Constant(INTS, ir.Undefined)])
        builder.store(written, address(8, arguments[9], INTS)).align = 4
        return builder.zext(builder.ctpop(builder.bitcast(near, ir.IntType(LANES))), LONG)

    return types.int64(xs, ys, numbers, first, left, x, y, r2, out, at), generate
