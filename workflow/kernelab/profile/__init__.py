"""Why an arm takes its time: hardware counters by Nsight Compute, one marked launch."""
