# Did the one change help? A verdict for every comparison, and both tables of them.


rule compare:
    input:
        records=lambda w: pipeline.compared(w.experiment),
    output:
        pipeline.layout.device / "compare/{experiment}.json",
    log:
        pipeline.log("compare/{experiment}"),
    conda:
        "../../envs/kernelab.yaml"
    params:
        digest=lambda w: pipeline.digests.compare(w.experiment),
    shell:
        "python -m kernelab compare {wildcards.experiment:q} > {log:q} 2>&1"


rule comparisons:
    input:
        plan=rules.plan.output.json,
        records=lambda w: pipeline.compares(pipeline.layout.comparisons),
    output:
        report(pipeline.layout.comparisons, caption="../captions/comparisons.rst", category="Tables"),
    log:
        "results/logs/comparisons.log",
    conda:
        "../../envs/kernelab.yaml"
    params:
        digest=pipeline.digests.plan,
    shell:
        "python -m kernelab comparisons --out {output} 2>&1 | tee {log}"


rule claims:
    input:
        plan=rules.plan.output.json,
        records=lambda w: pipeline.compares(pipeline.layout.claims),
    output:
        report(pipeline.layout.claims, caption="../captions/claims.rst", category="Tables"),
    log:
        "results/logs/claims.log",
    conda:
        "../../envs/kernelab.yaml"
    params:
        digest=pipeline.digests.plan,
    shell:
        "python -m kernelab claims --out {output} 2>&1 | tee {log}"
