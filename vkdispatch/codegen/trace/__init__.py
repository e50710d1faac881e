"""What a trace records: operations become expressions, stores and blocks become statements."""
