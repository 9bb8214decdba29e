"""Machine instructions that numba does not offer: compress a vector, and fetch memory ahead of its use.

They are written in LLVM's portable terms.  With AVX-512 a step of sixteen lanes is a handful of instructions;
elsewhere LLVM would spell compression out lane by lane, so a plain loop takes its place (``HAS_COMPRESS``).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, cast

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from nearcast.compiled import inlined

LANES: Final = 16
"""32-bit numbers in a vector of 512 bits.  Arrays that are read by vectors need this many spare elements."""

HAS_COMPRESS: Final[bool] = bool(llvmlite.binding.get_host_cpu_features().get("avx512f", False)) and not os.environ.get(
    "NEARCAST_SCALAR"
)

FLOAT: Final = ir.FloatType()
BYTE: Final = ir.IntType(8)
INT: Final = ir.IntType(32)
LONG: Final = ir.IntType(64)
FLOATS: Final = ir.VectorType(FLOAT, LANES)
INTS: Final = ir.VectorType(INT, LANES)
BITS: Final = ir.VectorType(ir.IntType(1), LANES)


def typed_intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    return cast("Callable[..., Any]", intrinsic(function))


@typed_intrinsic
def prefetch(_context: Any, array: Any, index: Any) -> Any:
    """``prefetch(array, index)`` brings the cache line of ``array.flat[index]`` near; never faults."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = address_of(context, builder, signature.args[0], arguments[0], arguments[1], BYTE)
        kind = ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), INT, INT, INT])
        instruction = declared(builder, kind, "llvm.prefetch.p0")
        read, every_cache, data = (ir.Constant(INT, value) for value in (0, 3, 1))
        builder.call(instruction, [address, read, every_cache, data])
        return context.get_dummy_value()

    return types.void(array, index), generate


@typed_intrinsic
def peek(_context: Any, array: Any, index: Any) -> Any:
    """``array.flat[index]`` of a contiguous array, for an index that is known to be within.

    numba's own indexing provides for negative indexes and multiplies with shapes that it does not know; in the inner
    loops that is half of the instructions.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        element = context.get_data_type(signature.return_type)
        address = address_of(context, builder, signature.args[0], arguments[0], arguments[1], element)
        return builder.load(address)

    return array.dtype(array, index), generate


@typed_intrinsic
def poke(_context: Any, array: Any, index: Any, value: Any) -> Any:
    """``array.flat[index] = value``; see ``peek``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0].dtype
        element = context.get_data_type(kind)
        address = address_of(context, builder, signature.args[0], arguments[0], arguments[1], element)
        builder.store(context.cast(builder, arguments[2], signature.args[2], kind), address)
        return context.get_dummy_value()

    return types.void(array, index, value), generate


@typed_intrinsic
def trailing_zeros(_context: Any, _value: Any) -> Any:
    """Position of the lowest bit that is set."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


@typed_intrinsic
def _step_vector(
    _context: Any, pool: Any, start: Any, capacity: Any, left: Any, mark: Any, shape: Any,
    holders: Any, tags: Any, squares: Any, at: Any,
) -> Any:  # fmt: skip
    """See ``step``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, capacity, left, mark, shape = arguments[1:6]
        at = arguments[9]

        def column(number: int) -> Any:
            index = builder.add(start, builder.mul(capacity, ir.Constant(LONG, number)))
            loaded = builder.load(address_of(context, builder, signature.args[0], arguments[0], index, INTS))
            loaded.align = 4
            return loaded

        def part(number: int) -> Any:
            return splat(builder, builder.extract_value(shape, number), FLOATS)

        def constant(value: int) -> Any:
            return ir.Constant(INTS, [value] * LANES)

        fused = ("contract",)
        place, tag, holder = column(0), column(1), column(2)
        dx = builder.fsub(builder.sitofp(builder.and_(place, constant(0xFFFF)), FLOATS), part(0))
        dy = builder.fsub(builder.sitofp(builder.lshr(place, constant(16)), FLOATS), part(1))
        cosines = builder.fadd(part(3), builder.fmul(part(4), dy, flags=fused), flags=fused)
        squared = builder.fadd(
            builder.fmul(part(2), builder.fmul(dy, dy, flags=fused), flags=fused),
            builder.fmul(builder.fmul(dx, dx, flags=fused), cosines, flags=fused),
            flags=fused,
        )
        lanes = ir.Constant(INTS, list(range(LANES)))
        present = builder.icmp_signed("<", lanes, splat(builder, builder.trunc(left, INT), INTS))
        maybe = builder.and_(present, builder.fcmp_ordered("<=", squared, part(5)))
        surely = builder.fcmp_ordered("<=", squared, part(6))
        flagged = builder.or_(tag, splat(builder, builder.trunc(mark, INT), INTS))
        tag = builder.select(surely, tag, flagged)

        kind = ir.FunctionType(INTS, [INTS, BITS, INTS])
        compress = declared(builder, kind, f"llvm.experimental.vector.compress.v{LANES}i32")
        for argument, source in ((6, holder), (7, tag), (8, builder.bitcast(squared, INTS))):
            written = builder.call(compress, [source, maybe, ir.Constant(INTS, ir.Undefined)])
            target = address_of(context, builder, signature.args[argument], arguments[argument], at, INTS)
            builder.store(written, target).align = 4
        return builder.zext(builder.ctpop(builder.bitcast(maybe, ir.IntType(LANES))), LONG)

    return types.int64(pool, start, capacity, left, mark, shape, holders, tags, squares, at), generate


def _step_scalar(
    pool: Any,
    start: int,
    capacity: int,
    left: int,
    mark: int,
    shape: Any,
    holders: Any,
    tags: Any,
    squares: Any,
    at: int,
) -> int:
    count = 0
    x, y, c0, c1, c2, outer, inner = shape
    for i in range(start, start + min(left, LANES)):
        place, tag = pool[i], pool[i + capacity]
        dx = np.float32(place & 0xFFFF) - x
        dy = np.float32((place >> 16) & 0xFFFF) - y
        squared = c0 * (dy * dy) + dx * dx * (c1 + c2 * dy)
        holders[at + count] = pool[i + 2 * capacity]
        tags[at + count] = tag if squared <= inner else tag | mark
        squares[at + count] = squared
        count += squared <= outer
    return count


step = _step_vector if HAS_COMPRESS else inlined(_step_scalar)
"""Tests up to sixteen entries of a bucket at once.

``step(pool, start, capacity, left, mark, shape, holders, tags, squares, at)`` looks at the entries ``start`` to
``start + min(left, 16)``.  ``shape`` is seven single-precision numbers x, y, c0, c1, c2, outer, inner: with dx and dy the
way from there to an entry's place in its cell, the squared distance is ``c0 dy² + dx² (c1 + c2 dy)``.  Entries within
``outer`` may be near, within ``inner`` they surely are.  Holder, tag and squared distance of those that may be near are
written without gaps from ``at`` on, the tag with ``mark`` in it where it is not sure; the result is their number.  The
rest of the sixteen elements written is rubbish, to be overwritten by the next call.
"""


def address_of(context: Any, builder: Any, kind: Any, array: Any, index: Any, element: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), element.as_pointer())


def splat(builder: Any, value: Any, kind: Any) -> Any:
    """A vector whose lanes all hold ``value``."""
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(INT, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(INTS, [0] * LANES))


def declared(builder: Any, kind: Any, name: str) -> Any:
    declare: Callable[..., Any] = cgutils.get_or_insert_function
    return declare(builder.module, kind, name)
