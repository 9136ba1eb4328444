# The plan and the toolchain, as records. The steps read config.yaml themselves: an input that is about to be made anew would
# keep Snakemake from looking at the params of the jobs behind it, even where it is ancient.


rule plan:
    input:
        lambda w: pipeline.remake(pipeline.layout.plan) + pipeline.remake(pipeline.layout.plan_table),
    output:
        json=pipeline.layout.plan,
        csv=pipeline.layout.plan_table,
    log:
        "results/logs/plan.log",
    conda:
        "../../envs/kernelab.yaml"
    params:
        digest=pipeline.digests.plan,
    shell:
        "python -m kernelab plan --out {output.json} --csv {output.csv} > {log} 2>&1"


rule toolchain:
    input:
        lambda w: pipeline.remake(pipeline.layout.toolchain),
    output:
        pipeline.layout.toolchain,
    log:
        "results/logs/toolchain.log",
    conda:
        "../../envs/kernelab.yaml"
    params:
        fingerprints=pipeline.digests.toolchains,
    shell:
        "python -m kernelab toolchain --out {output} > {log} 2>&1"
