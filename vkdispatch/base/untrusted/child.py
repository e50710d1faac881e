"""The child process that compiles untrusted code; `vkdispatch.base.untrusted.compiler` runs it.

It limits its resources before it reads its standard input, and exits with one of the statuses below. Of
vkdispatch it imports the native module only, so that untrusted code can reach as little as possible.
"""

import json
import os
import resource
import sys
from typing import Any

REFUSED, OUT_OF_MEMORY, FAILED = 3, 4, 5
STACK = 1 << 30  # bytes of address space of the thread that compiles
_LARGEST_FILE = 64 << 20
_ENORMOUS = 1 << 40  # address space: sanitizers reserve more than this, so the limit cannot be applied
_STORAGE_BUFFER, _UNIFORM_BUFFER = 1, 3


def _limit(seconds: int, memory: int | None) -> None:
    """Limit the processor time of this process and, unless None, the bytes that it may allocate."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_FILE, _LARGEST_FILE))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    if memory is None:
        return
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    if mapped < _ENORMOUS:
        most = mapped + STACK + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _compile(native: Any, data: bytes) -> None:
    sys.stdout.buffer.write(native.compile_glsl(**json.loads(data)))


def _validate(native: Any, data: bytes) -> None:
    sys.stdout.buffer.write((native.find_spirv_error(data) or "").encode())


def _create(native: Any, data: bytes) -> None:
    """Make a pipeline, and have the driver compile it down to the device's own code."""
    size = int.from_bytes(data[:4], "little")
    request = json.loads(data[4 : 4 + size])
    native.initialize(False)
    wanted = (request["uuid"], request["driver"])
    indices = [
        properties["dev_index"]
        for properties in native.device_properties()
        if (properties["uuid"].hex(), properties["driver_version"]) == wanted
    ]
    if not indices:
        raise RuntimeError("the child process does not find the device")
    engine = native.Engine(indices[:1], [request["families"][:1]], False, False)
    constants = [(number, bytes.fromhex(value)) for number, value in request["specialization"]]
    kinds, pushed = request["kinds"], request["pushed"]
    plan = native.Plan(
        engine, data[4 + size :], kinds, pushed, "untrusted", request["entry_point"], constants
    )
    if all(kind in (_STORAGE_BUFFER, _UNIFORM_BUFFER) for kind in kinds):
        # Some drivers compile at the first dispatch. This one has no workgroups.
        buffer = native.Buffer(engine, 1 << 12)
        commands = native.CommandList(engine)
        bindings = [(buffer, index, 0, 0, True, True) for index in range(len(kinds))]
        commands.record(plan, bindings, (0, 1, 1), pushed)
        commands.evaluate(-1, bytes(commands.instance_size), None)


def main() -> None:
    """Run the command line: compile, validate or create, the folder of the native module, seconds, bytes."""
    what, folder, seconds, memory = sys.argv[1:]
    sys.path.insert(0, folder)
    import vkdispatch_native as native

    _limit(int(seconds), int(memory) or None)
    try:
        {"compile": _compile, "validate": _validate, "create": _create}[what](native, sys.stdin.buffer.read())
        sys.stdout.flush()
    except ValueError as error:
        print(error, file=sys.stderr)
        status = REFUSED
    except MemoryError:
        status = OUT_OF_MEMORY
    except Exception as error:
        print(error, file=sys.stderr)
        status = FAILED
    else:
        status = 0
    sys.stderr.flush()
    # Exit without cleanup, as the compiler may have corrupted this process.
    os._exit(status)


if __name__ == "__main__":
    main()
