"""One search, by kernel_tuner and by kernelab: the parts of benchmarks/search_against_kernel_tuner.py."""
