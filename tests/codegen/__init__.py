"""Tests of the code generator; none needs a device."""
