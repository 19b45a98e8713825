"""A search as an experiment of its own."""
import logging

import determined as det
from determined import core, searcher
from determined.experimental import client
from method import Method, die_once

logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
info = det.get_cluster_info()
with open(info.user_data["password_file"]) as f:
    client.login(user="admin", password=f.read().strip())
with core.init() as context:
    runner = searcher.RemoteSearchRunner(Method(), context)
    die_once(runner, resumed=info.latest_checkpoint is not None).run(info.user_data["searched"], ".")
