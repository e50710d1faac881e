"""From text to a compiled module: the compiler, untrusted code, the cache on disk."""
