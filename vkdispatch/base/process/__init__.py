"""Services without a device: environment variables, timeouts, the log, `dir()` and pickling."""
