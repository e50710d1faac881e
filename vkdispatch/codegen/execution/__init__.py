"""What a kernel does besides computing: registers, control flow, invocations and how they work together."""
