# All records in one table, with the tables of comparisons and claims beside it, and a summary on the terminal.


rule table:
    input:
        plan=rules.plan.output.json,
        toolchain=rules.toolchain.output,
        comparisons=rules.comparisons.output,
        claims=rules.claims.output,
        builds=pipeline.builds(),
        checks=pipeline.checks(),
        timings=pipeline.timings(),
        profiles=pipeline.profiles(),
    output:
        report(pipeline.layout.table, caption="../captions/table.rst", category="Tables"),
    log:
        "results/logs/table.log",
    conda:
        "../../envs/kernelab.yaml"
    params:
        digest=pipeline.digests.plan,
    shell:
        "python -m kernelab table --out {output} 2>&1 | tee {log}"
