"""Search: race the configurations of a kernel against it, and hand the best to a controlled comparison."""
