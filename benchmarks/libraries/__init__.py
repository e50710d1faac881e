"""How each library does what the cases ask for. A module is imported only in its library's process.

Each has `CASES`, a function for each case that it can do, which takes the sizes and returns a `Trial`;
`SKIPS`, why it cannot do others; and `describe()`, what it is and runs on.
"""
