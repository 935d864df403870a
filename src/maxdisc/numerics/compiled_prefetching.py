"""Prefetching of memory.

Loops with random memory access spend most of their time waiting. A load that waits soon blocks everything
after it; a prefetch instruction does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from maxdisc.numerics.compiling import inlined

#: How many numbers of eight bytes processors fetch at once.
LINE = 8


def _prefetch(_: Any, array: Any, index: Any) -> Any:
    """Ask for an element of an array in C order, by its number; nothing happens if there is none."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        at = builder.bitcast(builder.gep(data, [arguments[1]]), pointer)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", (), kind)
        # To be read, into the nearest cache; data, not instructions.
        builder.call(function, [at, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, index), codegen


#: ``prefetch(array, index)``, in compiled code.
prefetch: Any = intrinsic(_prefetch)


@inlined
def prefetch_range(array: Any, start: Any, count: Any) -> None:
    """Ask for ``count`` elements of eight bytes (some more, if they are smaller)."""
    for i in range(np.uint64(0), np.uint64(count), np.uint64(LINE)):
        prefetch(array, np.uint64(start) + i)
