# The plan and the toolchain, as records that every step reads.


rule plan:
    output:
        json=pipeline.layout.plan,
        csv=pipeline.layout.plan_table,
    params:
        digest=pipeline.digests.plan,
        options=pipeline.plan_options,
    log:
        "results/logs/plan.log",
    shell:
        "{pipeline.command} plan --out {output.json} --csv {output.csv} {params.options} > {log} 2>&1"


rule toolchain:
    input:
        ancient(rules.plan.output.json),
    output:
        pipeline.layout.toolchain,
    params:
        fingerprints=pipeline.digests.toolchains,
    log:
        "results/logs/toolchain.log",
    shell:
        "{pipeline.command} toolchain --plan {input} --out {output} > {log} 2>&1"
