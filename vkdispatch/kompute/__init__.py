"""Kompute's Python module on vkdispatch: `import vkdispatch.kompute as kp`."""
