# Is the result right? On the operation's own small problems ("small"), and on a GPU also on the problem that is timed.


rule check:
    input:
        build=lambda w: pipeline.check_inputs(f"{w.kernel}/{w.variant}", w.problem, w.device),
    output:
        "results/{device}/check/{kernel}/{variant}/{problem}.json",
    log:
        "results/logs/{device}/check/{kernel}/{variant}/{problem}.log",
    retries: 1
    conda:
        "../../envs/kernelab.yaml"
    resources:
        gpu=lambda w: int(w.device != "emulated"),
        card=lambda w: int(w.device != "emulated"),
    params:
        digest=lambda w: pipeline.digests.check(f"{w.kernel}/{w.variant}", w.problem, w.device),
    shell:
        "python -m kernelab check {wildcards.kernel:q} {wildcards.variant:q} --problem {wildcards.problem:q} "
        "--device {wildcards.device:q} > {log:q} 2>&1"
