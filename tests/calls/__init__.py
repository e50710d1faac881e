"""Random calls of every public function on arrays, against NumPy: `python -m tests.calls.random_calls`."""
