# Every arm of an experiment, interleaved, on a quiet machine.


rule time:
    input:
        lambda w: pipeline.timing_inputs(w.experiment),
    output:
        # Kept until they are replaced: what was timed before and is still current is not timed again.
        record=update(pipeline.layout.device / "timing/{experiment}.json"),
        samples=update(pipeline.layout.device / "timing/{experiment}.csv.gz"),
    params:
        digest=lambda w: pipeline.digests.timing(w.experiment),
    log:
        pipeline.log("timing/{experiment}"),
    threads: workflow.cores
    resources:
        gpu=1,
        card=4,  # all of it: see profiles/default
    priority: 10
    retries: 1
    shell:
        "{pipeline.command} time {wildcards.experiment:q} {pipeline.plan_options} > {log:q} 2>&1"
