"""The self-test of a compiler: a script that loads a library and has it copy a small array.

It is run by itself, in a fresh interpreter, and imports nothing of this package.
"""

import ctypes
import sys
from typing import Any

COUNT = 37


def test(path: str) -> str | None:
    """Have the library copy `COUNT` numbers; return what is wrong, or None."""
    library = ctypes.CDLL(path)
    given = (ctypes.c_int32 * COUNT)(*(7 * i - 5 for i in range(COUNT)))
    taken = (ctypes.c_int32 * COUNT)()
    pointers = (ctypes.c_void_p * 2)(ctypes.addressof(given), ctypes.addressof(taken))
    message = ctypes.create_string_buffer(1024)
    room = ctypes.c_int64(1024)

    def call(name: str, *args: Any) -> None:
        if getattr(library, name)(*args, message, room):
            raise RuntimeError(message.value.decode(errors="replace") or f"{name} failed")

    count = library.accelpy_devices(message, room)
    if count < 1:
        return message.value.decode(errors="replace") or "there is no device"
    nbytes, device = ctypes.c_int64(ctypes.sizeof(given)), ctypes.c_int32(0)
    places = pointers
    apart = hasattr(library, "accelpy_allocate")
    if apart:
        places = (ctypes.c_void_p * 2)()
        for i in range(2):
            place = ctypes.c_void_p()
            call("accelpy_allocate", device, nbytes, ctypes.byref(place))
            places[i] = place.value
        to_device = ctypes.c_int32(1)
        call(
            "accelpy_copy",
            device,
            ctypes.c_void_p(places[0]),
            ctypes.c_void_p(pointers[0]),
            nbytes,
            to_device,
        )
    extents = (ctypes.c_int64 * 4)(COUNT, 1, COUNT, 1)
    counts = (ctypes.c_int32 * 9)(COUNT, 1, 1, 1, 1, 1, 1, 1, 1)
    call("accelpy_run", places, extents, counts, ctypes.c_int64(0), device)
    if apart:
        to_host = ctypes.c_int32(0)
        call(
            "accelpy_copy", device, ctypes.c_void_p(pointers[1]), ctypes.c_void_p(places[1]), nbytes, to_host
        )
    return None if list(taken) == list(given) else "the copy of an array is not the array"


if __name__ == "__main__":
    try:
        said = test(sys.argv[1])
    except (OSError, RuntimeError, AttributeError) as error:
        said = str(error)
    if said:
        print(said)
    sys.exit(1 if said else 0)
