"""How strongly the operators of GLSL bind."""

# Binding strength of operators, weakest first.
(
    CHOICE,
    OR,
    AND,
    BIT_OR,
    BIT_XOR,
    BIT_AND,
    EQUAL,
    ORDER,
    SHIFT,
    SUM,
    PRODUCT,
    PREFIX,
    POSTFIX,
) = range(13)
STRENGTH = {
    "||": OR,
    "&&": AND,
    "|": BIT_OR,
    "^": BIT_XOR,
    "&": BIT_AND,
    "==": EQUAL,
    "!=": EQUAL,
    "<": ORDER,
    "<=": ORDER,
    ">": ORDER,
    ">=": ORDER,
    "<<": SHIFT,
    ">>": SHIFT,
    "+": SUM,
    "-": SUM,
    "*": PRODUCT,
    "/": PRODUCT,
    "%": PRODUCT,
}
# Mixtures of these keep their parentheses, since few readers know how they bind.
UNFAMILIAR = frozenset(("|", "^", "&", "<<", ">>"))
