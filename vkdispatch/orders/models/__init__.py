"""The table of programming models, which follow the protocol in `protocol.py`."""

from vkdispatch.orders.models import cpp, cuda_hip, engine, fortran, glsl
from vkdispatch.orders.models.engine import EngineProgram
from vkdispatch.orders.models.protocol import Model, Placement, Program, Task

TABLE: dict[str, Model] = {
    model.name: model
    for model in (*cuda_hip.MODELS, *engine.MODELS, *glsl.MODELS, *cpp.MODELS, *fortran.MODELS)
}

__all__ = ["TABLE", "EngineProgram", "Model", "Placement", "Program", "Task"]
