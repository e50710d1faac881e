"""What is found out about a program without changing it."""
