"""What arrays are made of: dtypes, memory, expressions that wait to be computed, the class Array."""
