"""Synchronization with queues: events, signals, timestamps."""
