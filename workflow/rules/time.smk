# Every arm of an experiment, interleaved, on a quiet machine.


rule time:
    input:
        lambda w: pipeline.timing_inputs(w.experiment),
    output:
        # Kept until they are replaced: what was timed before and is still current is not timed again.
        record=update(pipeline.layout.device / "timing/{experiment}.json"),
        samples=update(pipeline.layout.device / "timing/{experiment}.csv.gz"),
    log:
        pipeline.log("timing/{experiment}"),
    priority: 10
    retries: 1
    conda:
        "../../envs/kernelab.yaml"
    threads: workflow.cores
    resources:
        gpu=1,
        card=4,  # all of it: see profiles/default
    params:
        digest=lambda w: pipeline.digests.timing(w.experiment),
    shell:
        "python -m kernelab time {wildcards.experiment:q} > {log:q} 2>&1"
