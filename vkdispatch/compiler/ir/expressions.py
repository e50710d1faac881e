"""Typed construction of expressions: which operands go together, in which type they meet, what comes out.

Every rule about types lives in `arithmetic`, `construction`, `literals` or `base.dtype`. Operands are
expressions or Python/NumPy numbers. A number takes the type of the values that it meets, so that `x * 2`
keeps the type of `x`; only a float beside integers is a float32. One that the type does not hold is an error.
"""

# ruff: noqa: I001 (isort would write an import statement for each name)
from vkdispatch.compiler.ir.arithmetic import (
    BITS_OF as BITS_OF,
    absolute as absolute,
    add as add,
    as_complex as as_complex,
    bitwise as bitwise,
    changed_number as changed_number,
    check_divisor as check_divisor,
    complex_product as complex_product,
    conjugate as conjugate,
    copy_sign as copy_sign,
    divide as divide,
    dot as dot,
    elementary as elementary,
    float_power as float_power,
    floor_divide as floor_divide,
    invert as invert,
    matmul as matmul,
    modulo as modulo,
    multiply as multiply,
    negate as negate,
    power as power,
)
from vkdispatch.compiler.ir.construction import (
    by_component as by_component,
    call as call,
    cast as cast,
    compare as compare,
    component as component,
    condition as condition,
    construct as construct,
    index as index,
    index_value as index_value,
    is_bool_like as is_bool_like,
    is_position as is_position,
    logical as logical,
    meet as meet,
    promote as promote,
    select as select,
    storable as storable,
    subgroup as subgroup,
    swizzle as swizzle,
)
from vkdispatch.compiler.ir.literals import (
    Number as Number,
    Operand as Operand,
    check_stored as check_stored,
    converted_literal as converted_literal,
    is_integer_number as is_integer_number,
    is_number as is_number,
    literal as literal,
    literal_dtype as literal_dtype,
)
