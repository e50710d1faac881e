"""The commands that a sequence submits."""
