# Source to machine code and static facts. A comment edit moves a source but not its digest, so sources are ancient.


rule build:
    input:
        sources=lambda w: ancient(pipeline.sources(f"{w.kernel}/{w.variant}")),
    output:
        multiext("results/build/{kernel}/{variant}/", "kernel.cubin", "kernel.ptx", "kernel.sass", "build.json"),
    params:
        digest=lambda w: pipeline.digests.build(f"{w.kernel}/{w.variant}"),
    log:
        "results/logs/build/{kernel}/{variant}.log",
    shell:
        "{pipeline.command} build {wildcards.kernel:q} {wildcards.variant:q} {pipeline.plan_options} > {log:q} 2>&1"
