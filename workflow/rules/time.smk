# Every arm of an experiment, interleaved, on a quiet machine.


rule time:
    input:
        plan=ancient(rules.plan.output.json),
        builds=lambda w: pipeline.builds(pipeline.plan.experiment_arms(w.experiment)),
        checks=lambda w: pipeline.checks(pipeline.plan.experiment_arms(w.experiment)),
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
    priority: 10
    retries: 1
    shell:
        "{pipeline.command} time {wildcards.experiment:q} --plan {input.plan} > {log:q} 2>&1"
