"""What is computed: operation.py loaded by path, inputs, reference, comparison, and the launches of one arm. No CuPy."""
