# The page: every table, chart and diff in one file that needs no network.


rule report:
    input:
        table=rules.table.output,
        comparisons=rules.comparisons.output,
        claims=rules.claims.output,
        records=lambda w: pipeline.compares(pipeline.layout.report),
    output:
        report(
            pipeline.layout.report,
            caption="../captions/report.rst",
            category="Report",
            labels={"what": "every answer, chart and diff"},
        ),
    log:
        "results/logs/report.log",
    conda:
        "../../envs/kernelab.yaml"
    params:
        digest=pipeline.digests.plan,
    shell:
        "python -m kernelab report --out {output:q} 2>&1 | tee {log:q}"
