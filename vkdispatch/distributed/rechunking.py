"""Rechunking between workers (`method="p2p"`), where the pieces of chunks that are Arrays wait on the host.

`distributed` cuts chunks into pieces, sends these, stores them on disk, and joins them once all are there.
Pieces that are Arrays would be copied from and to a device at each of these steps. So a chunk is read once,
before it is cut, and a new chunk is copied to the device once, after it is joined.
"""

import functools
import sys
from typing import Any


class Place(tuple[int, ...]):
    """Where a piece lies in its new chunk, which becomes an Array."""

    __slots__ = ()


def _is_array(value: Any) -> bool:
    # whoever has made one has loaded its module
    module = sys.modules.get("vkdispatch.numpy.core.array")
    return module is not None and isinstance(value, module.Array)


def watch_rechunking() -> None:
    """Have the workers of `distributed` in this process cut and join chunks on the host."""
    from distributed.shuffle import _rechunk

    cut, join = _rechunk.ArrayRechunkRun._shard_partition, _rechunk.convert_chunk

    @functools.wraps(cut)
    def cut_chunk(self: Any, data: Any, partition_id: Any) -> Any:
        if not _is_array(data):
            return cut(self, data, partition_id)
        return {
            worker: (source, [(chunk, (Place(place), piece)) for chunk, (place, piece) in pieces])
            for worker, (source, pieces) in cut(self, data.numpy(), partition_id).items()
        }

    @functools.wraps(join)
    def join_chunk(shards: Any) -> Any:
        joined = join(shards)
        if not any(isinstance(place, Place) for pieces in shards for place, _ in pieces):
            return joined
        from vkdispatch.numpy.core.conversion import from_numpy

        return from_numpy(joined)

    _rechunk.ArrayRechunkRun._shard_partition = cut_chunk
    _rechunk.convert_chunk = join_chunk
