"""Other libraries, kernels and notebooks: protocols, exchange of memory, text, inspection."""
