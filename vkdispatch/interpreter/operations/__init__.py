"""What GLSL operators and functions compute, on NumPy rows."""
