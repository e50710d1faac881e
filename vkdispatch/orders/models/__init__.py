"""The table of programming models: a model is a value that follows the protocol in `protocol.py`."""

from vkdispatch.orders.models import c_family
from vkdispatch.orders.models.protocol import Model, Placement, Program, Task

TABLE: dict[str, Model] = {model.name: model for model in c_family.MODELS}

__all__ = ["TABLE", "Model", "Placement", "Program", "Task"]
