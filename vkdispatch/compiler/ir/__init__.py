"""The typed program that a kernel is: expression trees held by a tree of statements.

The kernel language, the analyses, the passes, the interpreter and the GLSL writer share only this package.
`compiler.analyses.verify.verify` is the specification in executable form.
"""

# ruff: noqa: I001 (isort would write an import statement for each name)
from vkdispatch.compiler.ir.program import (
    Argument as Argument,
    Builtin as Builtin,
    Expr as Expr,
    ImageBinding as ImageBinding,
    Op as Op,
    RawText as RawText,
    Register as Register,
    ShaderFlags as ShaderFlags,
    SharedArray as SharedArray,
    Storage as Storage,
    Value as Value,
    describe_array as describe_array,
    is_constant as is_constant,
    is_encoded as is_encoded,
    is_item_in_memory as is_item_in_memory,
    is_part as is_part,
    is_place as is_place,
    root_of as root_of,
    split_array_indices as split_array_indices,
)
from vkdispatch.compiler.ir.program import (
    Assert as Assert,
    Block as Block,
    Break as Break,
    Comment as Comment,
    Continue as Continue,
    Declare as Declare,
    Effect as Effect,
    For as For,
    If as If,
    ImageStore as ImageStore,
    Kernel as Kernel,
    MatrixLoad as MatrixLoad,
    MatrixStore as MatrixStore,
    Print as Print,
    RawStatement as RawStatement,
    Read as Read,
    Return as Return,
    Scope as Scope,
    Statement as Statement,
    Store as Store,
    Switch as Switch,
    While as While,
)
from vkdispatch.compiler.ir.traversal import (
    assignments_of as assignments_of,
    blocks_of as blocks_of,
    evaluated as evaluated,
    expressions_in as expressions_in,
    expressions_of as expressions_of,
    map_statement as map_statement,
    nodes as nodes,
    place_operands as place_operands,
    postorder as postorder,
    reach as reach,
    sort_operands_first as sort_operands_first,
    walk as walk,
    with_args as with_args,
    without_asserts as without_asserts,
)
