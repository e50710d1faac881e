"""What belongs to the process: environment, log, other libraries in it, tracebacks."""
