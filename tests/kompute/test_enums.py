"""The enumerations: members that behave as those of Kompute."""

from __future__ import annotations

import copy
import enum
import pickle

import pytest

import vkdispatch.kompute as kp

NUMBERS = {
    kp.MemoryTypes: ["device", "host", "storage", "deviceAndHost"],
    kp.DataTypes: ["bool", "int", "uint", "float", "double", "custom", "short", "ushort", "char", "uchar"],
}


@pytest.mark.parametrize("kind", NUMBERS, ids=lambda kind: kind.__name__)
def test_members(kind: type[kp.MemoryTypes | kp.DataTypes]) -> None:
    names = NUMBERS[kind]
    assert list(kind.__members__) == [member.name for member in kind] == names
    assert len(kind) == len(names)
    for number, name in enumerate(names):
        member = getattr(kind, name)
        assert member is kind.__members__[name] is kind(number) is kind(member) is getattr(kp, name)
        assert type(member) is kind and not isinstance(member, enum.Enum)
        assert (member.name, member.value, int(member), hash(member)) == (name, number, number, hash(number))
        assert (str(member), repr(member)) == (
            f"{kind.__name__}.{name}",
            f"<{kind.__name__}.{name}: {number}>",
        )
        assert member is copy.copy(member) is copy.deepcopy(member) is pickle.loads(pickle.dumps(member))
        assert member != number and member == member
    assert len(set(kind.__members__.values())) == len(names)


def test_invalid_use_raises() -> None:
    for wrong in (-1, 4, "host", None, 0.5, kp.DataTypes.double):
        with pytest.raises(ValueError, match="MemoryTypes"):
            kp.MemoryTypes(wrong)
    with pytest.raises(TypeError):
        kp.MemoryTypes["host"]  # type: ignore[misc]
    with pytest.raises(AttributeError):
        kp.host.value = 3
    with pytest.raises(AttributeError):
        kp.host.other = 3  # type: ignore[attr-defined]
    assert kp.host != kp.int and kp.host is kp.MemoryTypes.host
