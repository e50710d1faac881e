"""Plain-Python functions on the device against the same functions run by Python."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from .running import agree


def collatz(n: Any) -> Any:
    steps = 0
    while n != 1 and steps < 200:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def early_collatz(n: Any) -> Any:
    steps = 0
    if n < 1:
        return -1
    while True:
        if n == 1:
            return steps
        if steps >= 150:
            return -2
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1


def gcd(a: Any, b: Any) -> Any:
    while b != 0:
        a, b = b, a % b
    return a


def fibonacci(n: Any) -> Any:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def binary_search(i: Any, data: Any) -> Any:
    low, high = 0, 99
    while low <= high:
        middle = (low + high) // 2
        found = data[middle]
        if found == i:
            return middle
        if found < i:
            low = middle + 1
        else:
            high = middle - 1
    return -1


def nested(n: Any) -> Any:
    total = 0
    for i in range(n % 7):
        for j in range(i, 9):
            if (i + j) % 5 == 3:
                continue
            for k in range(3, 12, 2):
                if k * j > n:
                    break
                if k == i + 1:
                    continue
                total += i * j + k
            else:
                total += 1000
            if total > 5000:
                break
        else:
            total += 7
            continue
        total -= 3
        if total < 0:
            return -total
    return total


def is_prime(n: Any) -> Any:
    if n < 2:
        return False
    d = 2
    while d * d <= n:
        if n % d == 0:
            return False
        d += 1
    return True


def count_primes(n: Any) -> Any:
    count = 0
    for k in range(n % 50):
        if is_prime(k):
            count += 1
    return count


def classified(n: Any) -> Any:
    if n < 10:
        x = 1
    elif n < 50 and n % 3 == 0:
        x = 2
    elif 100 <= n < 200 or n == 250:
        x = 3
    else:
        x = 4
        if not n % 2:
            x = x + n
    return x


def bits(n: Any) -> Any:
    count, value = 0, n
    while value:
        count += value & 1
        value >>= 1
    return count


def matched(n: Any) -> Any:
    match n % 6:
        case 0:
            return 10
        case 1 | 2:
            x = 20
        case 3 if n > 100:
            x = 30
        case rest:
            x = rest * 1000
    return x + 1


def first_of(n: Any) -> Any:
    for k in range(20):
        if k * k > n:
            return k
    return -1


def unrolled_break(n: Any) -> Any:
    total = 0
    for step in [3, 1, 4, 1, 5]:
        if total > n % 10:
            break
        if (n + step) % 2 == 0:
            continue
        total += step
    else:
        total += 100
    return total


def last_index(n: Any) -> Any:
    i = -5
    for i in range(n % 4):  # noqa: B007
        pass
    return i


def moved_counter(n: Any) -> Any:
    total = 0
    for i in range(n % 10):
        i = i * 2
        total += i
    return total


def tuples(n: Any) -> Any:
    pair = (1, n)
    while pair[0] < 40:
        pair = (pair[0] * 2 + 1, pair[1] + pair[0])
    return pair[1]


def swap_in_branch(n: Any) -> Any:
    a, b = n, 100
    if a > b:
        a, b = b, a
    return a * 1000 + b


def nonlocals(n: Any) -> Any:
    count = 0

    def bump(by: Any) -> Any:
        nonlocal count
        count += by
        return count

    i = 0
    while i < n % 13:
        if bump(i) > 20:
            bump(-3)
        i += 1
    return count


def walrus(n: Any) -> Any:
    total = 0
    while (n := n - 3) > 0:
        total += n
    if n < -1 and (m := n * n) > 2:
        total += m
    return total


def endless(n: Any) -> Any:
    i = 0
    while True:
        i += 1
        if i * i >= n:
            break
    return i


def helper_in_condition(n: Any) -> Any:
    i = 0
    while gcd(i + 1, n + 1) == 1 and i < 50:
        i += 1
    return i


def minmax(n: Any) -> Any:
    return min(n, 100) * 1000 + max(n % 7, 3, n % 5) + abs(n - 50)


def any_all(n: Any) -> Any:
    a = any(n % k == 0 for k in (3, 5, 7))
    b = all(n > k for k in [10, 20, 30])
    return int(a) + 2 * int(b)


def membership(n: Any) -> Any:
    x = 0
    if n % 10 in (1, 5, 7):
        x += 1
    if n not in range(20, 60):
        x += 2
    return x


def chained(n: Any) -> Any:
    return 1 if 3 < n % 10 <= 7 != n else 0


def bool_state(n: Any) -> Any:
    found = False
    k = 0
    while not found and k < 30:
        found = k * 7 % 31 == n % 31
        k += 1
    return k if found else -1


def lambdas(n: Any) -> Any:
    clamp = lambda x, low=3: low if x < low else x  # noqa: E731
    total = 0
    for k in range(n % 6):
        total += clamp(k)
    return total


def closures(n: Any) -> Any:
    def make(offset: int) -> Any:
        def inner(x: Any) -> Any:
            if x % 2:
                return x + offset
            return x - offset

        return inner

    return make(3)(n) * 100 + make(5)(n + 1)


def three_returns(n: Any) -> Any:
    for i in range(5):
        for j in range(n % 4):
            if i * j == 6:
                return 1
            k = 0
            while k < j:
                if k + i + j == n % 11:
                    return 2
                k += 1
    return 3


def default_zero(n: Any, scale: int = 2, *rest: Any, extra: int = 1) -> Any:
    return sum(rest, n * scale) + extra if n > 5 else extra


def star_calls(n: Any) -> Any:
    arguments = (1, 2)
    return default_zero(n, 3, *arguments, extra=7)


def known_branches(n: Any) -> Any:
    total = 0
    for k in range(4):
        if k == 2:
            continue
        if k % 2:
            total += n
        else:
            total -= k
    flag = None
    if flag is None:
        total += 1
    while total is None:
        total = 0
    return total


def dead_temporaries(n: Any) -> Any:
    temporary: Any = "text"
    total = 0
    for i in range(n % 5):
        temporary = i * 2
        total += temporary
    temporary = [total]
    return temporary[0]


def while_else(n: Any) -> Any:
    k = 0
    while k < 10:
        if k == n % 20:
            break
        k += 1
    else:
        k = -1
    return k


def unassigned_first(n: Any) -> Any:
    i = 0
    best = 0
    while i < n % 9:
        now = (i * 7919) % 13
        if now > best:
            best = now
            where = i
        else:
            where = -1
        best += where & 1
        i += 1
    return best


def with_block(n: Any) -> Any:
    total = 0
    try:
        i = 0
        while i < n % 4:
            total += i
            i += 1
    finally:
        total += 1
    return total


def jumps_inside_finally(n: Any) -> Any:
    total = 0
    try:
        for k in range(n % 9):
            with contextlib.suppress(KeyError):
                total += 1
            if k == 5:
                break
        for k in [1, 2, 3]:
            try:
                if k == 2:
                    continue
                total += k * n
            finally:
                total += 1
    finally:
        total += 1000
    return total


def many_branches(n: Any) -> Any:
    x = 0
    if n % 12 == 0:
        x = 1
    elif n % 12 == 1:
        x = 20
    elif n % 12 == 2:
        return n
    elif n % 12 == 3:
        x = n * 3
    elif x == 1:
        x = "never"
    elif n % 12 == 4 and n > 50:
        x = 5
    elif n % 12 == 5:
        for _ in range(n):
            x += 2
    elif n % 12 == 6:
        x = -n
    elif n % 12 == 7:
        x = 8
    elif (y := n % 12) == 8:
        x = y
    elif 9 <= n % 12 < 11:
        x = 10
    else:
        x = 99
    return x + 1


FUNCTIONS = [
    many_branches,
    jumps_inside_finally,
    early_collatz,
    fibonacci_small := lambda n: fibonacci(n % 20),
    nested,
    count_primes,
    classified,
    bits,
    matched,
    first_of,
    unrolled_break,
    last_index,
    moved_counter,
    tuples,
    swap_in_branch,
    nonlocals,
    walrus,
    endless,
    helper_in_condition,
    minmax,
    any_all,
    membership,
    chained,
    bool_state,
    lambdas,
    closures,
    three_returns,
    star_calls,
    known_branches,
    dead_temporaries,
    while_else,
    unassigned_first,
    with_block,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_same_as_python(function: Any) -> None:
    agree(function)


LIMIT = 4


def dead_at_break(i: Any) -> Any:
    h = 2
    n = total = 0
    while n < i % 7:
        n += 1
        total += h
        if i % 3 == 1:
            h = 5
        if i % 5 == n:
            if LIMIT > 3:
                break
            h = 9
        h = i
    return total * 100 + n


def dead_at_break_of_rounds(i: Any) -> Any:
    h = 2
    total = 0
    for n in [1, 2, 3, 4]:
        total += h
        if i % 3 == 1:
            h = 5
        if i % 5 == n:
            break
        h = i
    return total


def dead_at_continue(i: Any) -> Any:
    h = 2
    total = 0
    for n in range(i % 9):
        if n > 2:
            h = 5
        if i % 5 == n:
            h = "of another kind"
            break
        total += h if n else 3
        h = i
    return total


@pytest.mark.parametrize("function", [dead_at_break, dead_at_break_of_rounds, dead_at_continue])
def test_dead_variables_may_change_type(function: Any) -> None:
    agree(function, 64)
