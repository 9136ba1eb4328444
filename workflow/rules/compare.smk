# Did the one change help? A verdict for every comparison, and both tables of them.


rule compare:
    input:
        plan=ancient(rules.plan.output.json),
        records=lambda w: pipeline.compared(w.experiment),
    output:
        pipeline.layout.device / "compare/{experiment}.json",
    params:
        digest=lambda w: pipeline.digests.compare(w.experiment),
    log:
        pipeline.log("compare/{experiment}"),
    shell:
        "{pipeline.command} compare {wildcards.experiment:q} --plan {input.plan} > {log:q} 2>&1"


rule comparisons:
    input:
        plan=rules.plan.output.json,
        records=pipeline.compares(),
    output:
        pipeline.layout.comparisons,
    params:
        digest=pipeline.digests.plan,
    shell:
        "{pipeline.command} comparisons --plan {input.plan} --out {output}"


rule claims:
    input:
        plan=rules.plan.output.json,
        records=pipeline.compares(),
    output:
        pipeline.layout.claims,
    params:
        digest=pipeline.digests.plan,
    shell:
        "{pipeline.command} claims --plan {input.plan} --out {output}"
