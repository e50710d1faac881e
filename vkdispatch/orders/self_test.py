"""The self-test of a compiler: a script that loads a library and copies a small array with it.

It runs in a new interpreter, and imports nothing of this package.
"""

import ctypes
import sys
from typing import Any

COUNT = 37


def test(path: str) -> str | None:
    """Copy `COUNT` numbers with the library. Return an error message, or None."""
    library = ctypes.CDLL(path)
    source = (ctypes.c_int32 * COUNT)(*(7 * i - 5 for i in range(COUNT)))
    target = (ctypes.c_int32 * COUNT)()
    pointers = (ctypes.c_void_p * 2)(ctypes.addressof(source), ctypes.addressof(target))
    message = ctypes.create_string_buffer(1024)
    room = ctypes.c_int64(1024)

    def call(name: str, *args: Any) -> None:
        if getattr(library, name)(*args, message, room):
            raise RuntimeError(message.value.decode(errors="replace") or f"{name} failed")

    count = library.accelpy_devices(message, room)
    if count < 1:
        return message.value.decode(errors="replace") or "there is no device"
    nbytes, device = ctypes.c_int64(ctypes.sizeof(source)), ctypes.c_int32(0)
    places = pointers
    has_device_memory = hasattr(library, "accelpy_allocate")
    if has_device_memory:
        places = (ctypes.c_void_p * 2)()
        for i in range(2):
            place = ctypes.c_void_p()
            call("accelpy_allocate", device, nbytes, ctypes.byref(place))
            places[i] = place.value
        to, origin = ctypes.c_void_p(places[0]), ctypes.c_void_p(pointers[0])
        call("accelpy_copy", device, to, origin, nbytes, ctypes.c_int32(1))
    extents = (ctypes.c_int64 * 4)(COUNT, 1, COUNT, 1)
    counts = (ctypes.c_int32 * 9)(COUNT, 1, 1, 1, 1, 1, 1, 1, 1)
    call("accelpy_run", places, extents, counts, ctypes.c_int64(0), device)
    if has_device_memory:
        to, origin = ctypes.c_void_p(pointers[1]), ctypes.c_void_p(places[1])
        call("accelpy_copy", device, to, origin, nbytes, ctypes.c_int32(0))
    return None if list(target) == list(source) else "the copy of an array differs from the array"


if __name__ == "__main__":
    try:
        failure = test(sys.argv[1])
    except (OSError, RuntimeError, AttributeError) as error:
        failure = str(error)
    if failure:
        print(failure)
    sys.exit(1 if failure else 0)
