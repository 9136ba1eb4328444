# Did the one change help? A verdict for every comparison, and both tables of them.


rule compare:
    input:
        records=lambda w: pipeline.compared(w.experiment),
    output:
        pipeline.layout.device / "compare/{experiment}.json",
    params:
        digest=lambda w: pipeline.digests.compare(w.experiment),
    log:
        pipeline.log("compare/{experiment}"),
    shell:
        "{pipeline.command} compare {wildcards.experiment:q} {pipeline.plan_options} > {log:q} 2>&1"


rule comparisons:
    input:
        plan=rules.plan.output.json,
        records=pipeline.compares(),
    output:
        pipeline.layout.comparisons,
    params:
        digest=pipeline.digests.plan,
    shell:
        "{pipeline.command} comparisons {pipeline.plan_options} --out {output}"


rule claims:
    input:
        plan=rules.plan.output.json,
        records=pipeline.compares(),
    output:
        pipeline.layout.claims,
    params:
        digest=pipeline.digests.plan,
    shell:
        "{pipeline.command} claims {pipeline.plan_options} --out {output}"
