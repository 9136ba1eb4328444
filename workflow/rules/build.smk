# Source to machine code and static facts. A comment edit moves a source but not its digest, so sources are ancient.


rule build:
    input:
        sources=lambda w: ancient(pipeline.sources(f"{w.kernel}/{w.variant}")),
    output:
        multiext(
            "results/build/{kernel}/{variant}/", "kernel.cubin", "kernel.ptx", "kernel.sass", "build.json"
        ),
    log:
        "results/logs/build/{kernel}/{variant}.log",
    conda:
        "../../envs/kernelab.yaml"
    params:
        digest=lambda w: pipeline.digests.build(f"{w.kernel}/{w.variant}"),
    shell:
        "python -m kernelab build {wildcards.kernel:q} {wildcards.variant:q} > {log:q} 2>&1"
