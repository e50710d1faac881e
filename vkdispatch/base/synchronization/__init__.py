"""Points in the work of queues: events, signals, times on the device."""
