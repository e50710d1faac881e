"""What is known while rewritten functions run: values, local variables, containers and the trace."""
