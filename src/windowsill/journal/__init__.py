"""Read and write the entries of a session through its store."""
