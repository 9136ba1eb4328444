# Which configuration of a kernel is fastest? Build and race them all; then the best against the base, as an experiment is.


rule search:
    input:
        lambda w: pipeline.search_inputs(w.search),
    output:
        # Kept until they are replaced: what was built and raced before and is still current is not raced again.
        configurations=update(pipeline.layout.device / "search/{search}.csv"),
        record=update(pipeline.layout.device / "search/{search}.json"),
        samples=update(pipeline.layout.device / "search/{search}.samples.csv.gz"),
    log:
        pipeline.log("search/{search}"),
    retries: 1
    conda:
        "../../envs/kernelab.yaml"
    threads: workflow.cores
    resources:
        gpu=int(pipeline.on_gpu),
        card=4 * pipeline.on_gpu,
    params:
        digest=lambda w: pipeline.digests.search(w.search),
    shell:
        "python -m kernelab search {wildcards.search:q} > {log:q} 2>&1"


rule confirm:
    input:
        lambda w: pipeline.confirm_inputs(w.search),
    output:
        pipeline.layout.device / "search/{search}.confirmed.json",
    log:
        pipeline.log("search/{search}.confirmed"),
    retries: 1
    conda:
        "../../envs/kernelab.yaml"
    threads: workflow.cores
    resources:
        gpu=1,
        card=4,  # all of it: see profiles/default
    params:
        digest=lambda w: pipeline.digests.confirm(w.search),
    shell:
        "python -m kernelab confirm {wildcards.search:q} > {log:q} 2>&1"


rule searches:
    input:
        records=lambda w: pipeline.searched(),
    output:
        report(pipeline.layout.searches, caption="../captions/searches.rst", category="Tables"),
    log:
        "results/logs/searches.log",
    conda:
        "../../envs/kernelab.yaml"
    params:
        digest=lambda w: pipeline.searches_digest,
    shell:
        "python -m kernelab searches --out {output} 2>&1 | tee {log}"
