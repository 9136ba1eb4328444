# Why: one marked launch of an arm under ncu.


rule profile:
    input:
        lambda w: pipeline.profile_inputs(f"{w.kernel}/{w.variant}", w.problem),
    output:
        record=pipeline.layout.device / "profile/{kernel}/{variant}/{problem}.json",
        report=pipeline.layout.device / "profile/{kernel}/{variant}/{problem}.ncu-rep",
    params:
        digest=lambda w: pipeline.digests.profile(pipeline.profiled_arm(f"{w.kernel}/{w.variant}", w.problem)),
    log:
        pipeline.log("profile/{kernel}/{variant}/{problem}"),
    resources:
        gpu=1,
        card=4,  # all of it: see profiles/default
    retries: 1
    shell:
        "{pipeline.command} profile {wildcards.kernel:q} {wildcards.variant:q} --problem {wildcards.problem:q} "
        "{pipeline.plan_options} > {log:q} 2>&1"
