"""Annotations of kernel arguments for dtypes that are known at run time: see `codegen.annotations`."""

from vkdispatch.codegen.annotations import Annotation as Annotation
from vkdispatch.codegen.annotations import buffer as buffer
from vkdispatch.codegen.annotations import constant as constant
