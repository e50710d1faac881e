"""GPU values: elements as they are loaded, words, the dtypes in which they meet."""
