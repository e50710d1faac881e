"""The `record_<operation>` methods of sequences in Kompute 0.5 and 0.6."""

import os
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vkdispatch.base.context import Context
from vkdispatch.kompute.operations import named

if TYPE_CHECKING:
    from vkdispatch.kompute.memory.memory import Memory
    from vkdispatch.kompute.operations.operation import OpBase


class LegacyRecordMethods:
    """The `record_<operation>` methods. Each returns and raises what `record` does."""

    __slots__ = ()

    if TYPE_CHECKING:
        _context: Context
        _objects: "weakref.WeakSet[Any]"

        def record(self, op: "OpBase") -> Any:
            """Record an operation."""

    def record_tensor_create(self, tensors: Any) -> Any:
        """Allocate device memory for tensors of `kp.Tensor(data)`, and record a copy of their data to it.

        Every evaluation copies the data of this moment.
        """
        return self.record(named.make_tensor_create(self._make_owner(), tensors))

    def record_tensor_sync_device(self, tensors: "Sequence[Memory]") -> Any:
        """Record an OpSyncDevice."""
        return self.record(named.make_sync_device(self._make_owner(), tensors))

    def record_tensor_sync_local(self, tensors: "Sequence[Memory]") -> Any:
        """Record an OpSyncLocal."""
        return self.record(named.make_sync_local(self._make_owner(), tensors))

    def record_tensor_copy(self, tensors: "Sequence[Memory]") -> Any:
        """Record an OpCopy."""
        return self.record(named.make_copy(self._make_owner(), tensors))

    def record_algo_data(
        self,
        tensors: "Sequence[Memory]",
        bytes: Any,
        work_group: Sequence[int] = (0, 0, 0),
        *options: Any,
    ) -> Any:
        """Record the dispatch of SPIR-V or GLSL on tensors.

        Parameters
        ----------
        bytes
            SPIR-V or GLSL as bytes, text, or a list of bytes or characters.
        work_group
            Workgroups along x, y and z. With zeros, one for each element of the first tensor.
        options
            spec_consts and push_consts, as of `kp.Manager.algorithm`.
        """
        return self.record(named.make_algo_data(self._make_owner(), tensors, bytes, work_group, *options))

    def record_algo_file(
        self,
        tensors: "Sequence[Memory]",
        file_path: "str | os.PathLike[str]",
        work_group: Sequence[int] = (0, 0, 0),
        *options: Any,
    ) -> Any:
        """Record the dispatch of a file of SPIR-V or GLSL on tensors. Otherwise as `record_algo_data`."""
        return self.record(named.make_algo_file(self._make_owner(), tensors, file_path, work_group, *options))

    def record_algo_mult(self, tensors: "Sequence[Memory]") -> Any:
        """Record an OpMult of three tensors."""
        return self.record(named.make_algo_mult(self._make_owner(), tensors))

    def record_algo_lro(
        self,
        tensors: "Sequence[Memory]",
        shader: Any = None,
        work_group: Sequence[int] = (0, 0, 0),
        *options: Any,
    ) -> Any:
        """Record the dispatch of a shader on left, right and out, and the copy of out to the host.

        The three tensors have the same size. Otherwise as `record_algo_data`.
        """
        return self.record(named.make_algo_lro(self._make_owner(), tensors, shader, work_group, *options))

    def _make_owner(self) -> named.Owner:
        return named.Owner(self._context, self._objects)
