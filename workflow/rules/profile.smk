# Why: one marked launch of an arm under ncu.


rule profile:
    input:
        lambda w: pipeline.profile_inputs(f"{w.kernel}/{w.variant}", w.problem),
    output:
        record=pipeline.layout.device / "profile/{kernel}/{variant}/{problem}.json",
        report=pipeline.layout.device / "profile/{kernel}/{variant}/{problem}.ncu-rep",
    log:
        pipeline.log("profile/{kernel}/{variant}/{problem}"),
    retries: 1
    conda:
        "../../envs/kernelab.yaml"
    resources:
        gpu=1,
        card=4,  # all of it: see profiles/default
    params:
        digest=lambda w: pipeline.digests.profile(pipeline.profiled_arm(f"{w.kernel}/{w.variant}", w.problem)),
    shell:
        "python -m kernelab profile {wildcards.kernel:q} {wildcards.variant:q} --problem {wildcards.problem:q} > {log:q} 2>&1"
