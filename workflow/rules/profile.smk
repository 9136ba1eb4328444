# Why: one marked launch of an arm under ncu.


rule profile:
    input:
        plan=ancient(rules.plan.output.json),
        build=lambda w: pipeline.build_of(f"{w.kernel}/{w.variant}"),
        check=pipeline.layout.device / "check/{kernel}/{variant}/small.json",
    output:
        record=pipeline.layout.device / "profile/{kernel}/{variant}/{problem}.json",
        report=pipeline.layout.device / "profile/{kernel}/{variant}/{problem}.ncu-rep",
    params:
        digest=lambda w: pipeline.digests.profile(pipeline.profiled_arm(f"{w.kernel}/{w.variant}", w.problem)),
    log:
        pipeline.log("profile/{kernel}/{variant}/{problem}"),
    resources:
        gpu=1,
    retries: 1
    shell:
        "{pipeline.command} profile {wildcards.kernel:q} {wildcards.variant:q} --problem {wildcards.problem:q} "
        "--plan {input.plan} > {log:q} 2>&1"
