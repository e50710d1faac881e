# ruff: noqa: D100, D103, F403, I001, F405
import numpy as np
import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abreviations import *


# @vd.shader(exec_size=lambda args: args.data.size)
@vd.shader("data.size")
def scale_inplace(data: Buff[f32], alpha: Const[f32]) -> None:
    tid = vc.global_invocation_id().x
    data[tid] = data[tid] * alpha


arr = np.arange(16, dtype=np.float32)
buf = vd.asbuffer(arr)

scale_inplace(buf, 2.0)

out = buf.read(0)
print(out)  # [0, 2, 4, ...]
