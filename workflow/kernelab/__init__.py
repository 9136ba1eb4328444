"""kernelab: controlled comparison of CUDA kernels, as a Snakemake pipeline."""

__version__ = "0.1.0"
