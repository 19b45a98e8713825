"""Prints what the task was told; the first run leaves a checkpoint, which the second one is told of."""
import json
import os
import sys

import determined as det
from determined import core

info = det.get_cluster_info()
named = ("master_url cluster_id agent_id slot_ids gpu_uuids task_id allocation_id session_token task_type master_cert_name "
         "master_cert_file latest_checkpoint container_addrs container_rank container_slot_counts user_data").split()
told = {name: getattr(info, name) for name in named}
told.update({name: getattr(info.trial, name) for name in ("trial_id", "experiment_id", "trial_seed", "hparams")})
told.update({name: getattr(info.trial, "_" + name) for name in ("config", "steps_completed", "trial_run_id", "debug")})
told["interface"] = info.trial._inter_node_network_interface
with core.init(distributed=core.DummyDistributedContext()) as context:
    if info.latest_checkpoint is None:
        with context.checkpoint.store_path({"steps_completed": 3}) as (path, uuid):
            (path / "note.txt").write_text("noted")
    else:
        uuid = os.path.basename(info.latest_checkpoint)
    print("info: " + json.dumps({**told, "uuid": uuid}), flush=True)
    if info.latest_checkpoint is None:
        sys.exit(1)
    for op in context.searcher.operations():
        context.train.report_validation_metrics(op.length, {"error": 1.0})
        op.report_completed(1.0)
