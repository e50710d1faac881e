"""Annotations of kernel arguments for dtypes that are known at run time: see `codegen.annotations`."""

from vkdispatch.codegen.arguments import Annotation as Annotation
from vkdispatch.codegen.arguments import buffer as buffer
from vkdispatch.codegen.arguments import constant as constant
