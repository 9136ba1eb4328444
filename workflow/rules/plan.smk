# The plan and the toolchain, as records. The steps read config.yaml themselves: an input that is about to be made anew would
# keep Snakemake from looking at the params of the jobs behind it, even where it is ancient.


rule plan:
    input:
        lambda w: pipeline.remake(pipeline.layout.plan) + pipeline.remake(pipeline.layout.plan_table),
    output:
        json=pipeline.layout.plan,
        csv=pipeline.layout.plan_table,
    params:
        digest=pipeline.digests.plan,
    log:
        "results/logs/plan.log",
    shell:
        "{pipeline.command} plan --out {output.json} --csv {output.csv} {pipeline.plan_options} > {log} 2>&1"


rule toolchain:
    input:
        lambda w: pipeline.remake(pipeline.layout.toolchain),
    output:
        pipeline.layout.toolchain,
    params:
        fingerprints=pipeline.digests.toolchains,
    log:
        "results/logs/toolchain.log",
    shell:
        "{pipeline.command} toolchain {pipeline.plan_options} --out {output} > {log} 2>&1"
