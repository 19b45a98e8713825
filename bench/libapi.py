"""What bench/api.py asks: every route of proto/openapi.yaml that reads, with each of its filters and orders.

Cases follow from the contract: a parameter that is an enum is asked with each of its values, and for every other one a
line of VALUES says what to ask. A route or a parameter that nothing here knows is an error, so that it cannot be forgotten.
"""
import json
import os
import random
import urllib.parse

import yaml

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
LEFT_OUT = {  # operation: why it is no list, detail or chart
    "info": "of a master, not of data", "health": "of a master, not of data", "readiness": "of a master, not of data",
    "prometheus": "made for one reader every 15 s",
    **dict.fromkeys(("download_model_def", "download_file", "download_checkpoint", "get_model_def", "get_context_directory", "download_allocation_raw",
                     "download_allocations_csv", "download_allocation_aggregated"), "a download"),
    "replay_search": "plays a search again, on a worker thread",
    "get_searcher_events": "waits for events", "rendezvous": "waits for other hosts", "preemption_signal": "waits for a signal",
    "get_searcher_operation": "what a trial asks of its own run",
}
AGENTS, SLOTS = 16, 8  # of the cluster beside the rows, each agent's
# Parameters that change neither what is looked for nor its order: asked with the rest, or not at all.
PAGING = {"offset", "limit", "maxDatapoints", "maxTrials", "periodSeconds"}
FOLLOWING = {"follow"}  # waits for what comes: not a look at what is there


class World:
    """Ids and names of the rows that bench/api_rows.sql makes."""
    def __init__(self, experiments, per, big):
        self.experiments, self.per, self.big = experiments, per, big
        self.trials = (experiments - 1) * per + big
        self.big_experiment, self.long_trial = experiments, self.trials
        self.waiting = {"experiment": 1, "trials": [1], "job": "none"}  # what bench/api.py lets wait in a queue

    def experiment(self):
        return random.randint(1, self.experiments - 1)

    def trial(self):
        return random.randint(1, self.trials)

    def task(self, trial):
        return f"{min((trial - 1) // self.per + 1, self.experiments)}.r{trial}"

    def uuid(self, trial):
        return f"00000000-0000-4000-8000-{trial:012d}"


def ids(w, n):
    return [w.experiment() for _ in range(n)]


def tree(n):
    """A name, and one of a metric and a hyperparameter."""
    field = lambda column, operator, value: {"kind": "field", "columnName": column, "operator": operator, "value": value}
    group = lambda how, *children: {"kind": "group", "conjunction": how, "children": children}
    some = group("or", field("validation.loss.min", "<", 0.5), field("hp.lr", ">", 0.01))
    return urllib.parse.quote(json.dumps({"filterGroup": group("and", field("name", "contains", f"net {n}"), some), "showArchived": True}))


# What is asked for in a parameter; "operation.parameter" goes first. A list: the parameter several times.
VALUES = {
    "name": lambda w: f"net {random.randint(10, 99)}", "description": lambda w: f"number {random.randint(100, 999)}",
    "labels": lambda w: f"label-{random.randint(0, 39)}", "archived": lambda w: random.choice(["false", "true"]),
    "users": lambda w: f"user-{random.randint(1, 20)}", "userIds": lambda w: random.randint(1001, 1020), "projectId": lambda w: random.randint(1001, 1012),
    "experimentIdFilter.lt": lambda w: w.experiment(), "experimentIdFilter.lte": lambda w: w.experiment(),
    "experimentIdFilter.gt": lambda w: w.experiment(), "experimentIdFilter.gte": lambda w: w.experiment(),
    "experimentIdFilter.incl": lambda w: ids(w, 20), "experimentIdFilter.notIn": lambda w: ids(w, 20), "showTrialData": lambda w: "true",
    "active": lambda w: "true", "admin": lambda w: "false", "get_users.name": lambda w: f"user-{random.randint(1, 20)}",
    "roleIdAssignedDirectlyToUser": lambda w: 1, "get_templates.name": lambda w: f"template-{random.randint(1, 20)}",
    "get_workspaces.name": lambda w: f"workspace-{random.randint(1, 4)}", "nameCaseSensitive": lambda w: f"workspace-{random.randint(1, 4)}",
    "get_workspace_projects.name": lambda w: f"project-{random.randint(1, 12)}",
    "get_templates.sortBy": lambda w: "SORT_BY_NAME", "get_workspaces.sortBy": lambda w: "SORT_BY_NAME",
    "get_workspace_projects.sortBy": lambda w: random.choice(["SORT_BY_CREATION_TIME", "SORT_BY_LAST_EXPERIMENT_START_TIME", "SORT_BY_NAME"]),
    "sortByMetric": lambda w: "loss", "sortKey": lambda w: "loss", "includeBatchMetrics": lambda w: "true", "group": lambda w: "validation",
    "get_views.name": lambda w: f"view-{random.randint(1, 20)}",
    "get_models.name": lambda w: f"model-{random.randint(1, 20)}", "workspaceNames": lambda w: f"workspace-{random.randint(1, 4)}",
    "workspaceIds": lambda w: random.randint(1001, 1004), "workspaceId": lambda w: random.randint(1001, 1004), "get_models.id": lambda w: random.randint(1001, 1020),
    "get_models.sortBy": lambda w: random.choice(["SORT_BY_NAME", "SORT_BY_DESCRIPTION", "SORT_BY_LAST_UPDATED_TIME", "SORT_BY_NUM_VERSIONS", "SORT_BY_WORKSPACE"]),
    "get_model_versions.sortBy": lambda w: "SORT_BY_VERSION",
    "search_experiments.filter": lambda w: tree(random.randint(10, 99)), "group_experiments.filter": lambda w: tree(random.randint(10, 99)), "by": lambda w: ["hp.lr", "tags"],
    "metrics": lambda w: "validation.loss.min", "search_experiments.sort": lambda w: "validation.loss.min=asc,name=desc",
    "removeDeletedCheckpoints": lambda w: "true", "agentIds": lambda w: f"agent-{random.randint(0, 3)}", "containerIds": lambda w: "container-1",
    "rankIds": lambda w: random.randint(0, 3), "stdtypes": lambda w: "stdout", "sources": lambda w: "trial",
    "timestampBefore": lambda w: "2026-01-01T00:05:00Z", "timestampAfter": lambda w: "2026-01-01T00:05:00Z", "searchText": lambda w: "batch 7",
    "enableRegex": lambda w: "true", "beyondId": lambda w: 7, "allocationIds": lambda w: "none", "metricIds": lambda w: "training.loss",
    "metricNames": lambda w: "accuracy", "metricName": lambda w: "accuracy", "startBatches": lambda w: 2000, "endBatches": lambda w: 8000,
    "timeSeriesFilter.name": lambda w: "batches", "timeSeriesFilter.integerRange.gt": lambda w: 2000, "timeSeriesFilter.integerRange.gte": lambda w: 2000,
    "timeSeriesFilter.integerRange.lt": lambda w: 8000, "timeSeriesFilter.integerRange.lte": lambda w: 8000,
    "timeSeriesFilter.timeRange.gt": lambda w: "2026-01-01T00:00:00Z", "timeSeriesFilter.timeRange.lte": lambda w: "2027-01-01T00:00:00Z",
    "batchesProcessed": lambda w: 5000, "batchesMargin": lambda w: 50, "label": lambda w: "", "unbound": lambda w: "true",
    "resourcePool": lambda w: "default", "resourcePools": lambda w: "default", "labels.name": lambda w: "gpu_util", "labels.agentId": lambda w: "agent-0",
    "labels.gpuUuid": lambda w: "", "trialIds": lambda w: [w.trial() for _ in range(10)], "ids": lambda w: [w.experiment() for _ in range(10)],
    "get_audit.username": lambda w: f"user-{random.randint(1, 20)}", "operation": lambda w: "delete_experiment", "since": lambda w: "2026-01-01T00:05:00Z",
    **{f"resource_allocation_raw.timestamp{end}": lambda w, at=at: f"2026-01-04T{at}:00:00Z" for end, at in (("After", "08"), ("Before", "09"))},
    "startDate": lambda w: "2026-01-01", "endDate": lambda w: "2026-01-08", "place": lambda w: "/tmp", "get_roles_of_workspace.name": lambda w: "user-1",
    "save_experiment_best": lambda w: 1, "save_trial_best": lambda w: 0, "save_trial_latest": lambda w: 0,
    "before": lambda w: "1.5", "get_tokens.username": lambda w: "admin", "showInactive": lambda w: "true",
}
PATH = {
    "experimentId": lambda w: w.experiment(), "trialId": lambda w: w.trial(), "labels.trialId": lambda w: w.trial(), "userId": lambda w: random.randint(1001, 1020),
    "username": lambda w: f"user-{random.randint(1, 20)}", "templateName": lambda w: f"template-{random.randint(1, 20)}",
    "viewId": lambda w: random.randint(1001, 1200), "modelName": lambda w: f"model-{random.randint(1, 20)}", "modelVersionNum": lambda w: random.randint(1, 5),
    "checkpointUuid": lambda w: w.uuid(w.trial()), "taskId": lambda w: w.task(w.trial()), "allocationId": lambda w: w.task(w.trial()) + ".1",
    "get_workspace.id": lambda w: random.randint(1001, 1004), "get_workspace_projects.id": lambda w: random.randint(1001, 1004),
    "get_project.id": lambda w: random.randint(1001, 1012), "get_experiment_checkpoints.id": lambda w: w.experiment(),
    "get_trial_checkpoints.id": lambda w: w.trial(), "get_trial_timeline.id": lambda w: w.trial(), "preview_gc.id": lambda w: w.experiment(),
    "get_trial_why.id": lambda w: w.trial(), "get_experiment_why.id": lambda w: w.experiment(), "jobId": lambda w: w.waiting["job"],
    "agentId": lambda w: f"herd-{random.randrange(AGENTS)}", "slotId": lambda w: random.randrange(SLOTS), "groupId": lambda w: random.randint(1001, 1020),
    "get_roles_of_workspace.workspaceId": lambda w: random.randint(1001, 1004),
}
# What a route cannot be asked without.
ALWAYS = {
    "compare_trials": {"trialIds": lambda w: w.trial(), "metricNames": lambda w: "loss", "metricType": lambda w: "METRIC_TYPE_TRAINING"},
    "group_experiments": {"by": lambda w: "hp.lr"}, "exp_metric_names": {"ids": lambda w: w.experiment()}, "get_metrics": {"trialIds": lambda w: w.trial()},
    "get_training_metrics": {"trialIds": lambda w: w.trial()}, "get_validation_metrics": {"trialIds": lambda w: w.trial()},
    "resource_allocation_raw": {f"timestamp{end}": VALUES[f"resource_allocation_raw.timestamp{end}"] for end in ("After", "Before")},
    "resource_allocation_aggregated": {"startDate": VALUES["startDate"], "endDate": VALUES["endDate"], "period": "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY"},
    "get_unknown_checkpoints": {"place": VALUES["place"]},
    **{op: {"metricName": lambda w: "loss", "metricType": lambda w: "METRIC_TYPE_TRAINING"}
       for op in ("exp_metric_batches", "exp_trials_snapshot", "exp_trials_sample")},
}
# What goes with a choice.
WITH = {"period=RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY": {"startDate": "2026-01", "endDate": "2026-02"}}
# An order goes with what it turns around; a sort by a metric is by nothing else.
WITHOUT = {"group": ["metricType"], "metricIds": ["metricNames", "metricType"], "sortByMetric": ["sortByAttr"]}
EXPERIMENT_OPS = {"get_experiment", "get_experiment_trials", "get_experiment_checkpoints", "get_validation_history",
                  "get_best_searcher_validation_metric", "preview_gc", "get_experiment_why", "exp_metric_names", "exp_metric_batches", "exp_trials_snapshot", "exp_trials_sample"}


def contract():
    with open(os.path.join(TOP, "proto", "openapi.yaml")) as f:
        return yaml.load(f, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def resolve(doc, schema):
    schema = (schema.get("allOf") or [schema])[0]
    while "$ref" in schema:
        node = doc
        for part in schema["$ref"][2:].split("/"):
            node = node[part]
        schema = node
    return schema


def choices(doc, param):
    """Values of a parameter that is an enum, or of a list of them; the unspecified one says nothing."""
    schema = resolve(doc, param.get("schema") or {})
    if schema.get("type") == "array":
        schema = resolve(doc, schema["items"])
    if schema.get("type") == "boolean" or "enum" not in schema:
        return []
    return [v for v in schema["enum"] if not str(v).endswith("_UNSPECIFIED")]


def known(table, op, name):
    value = table.get(f"{op}.{name}", table.get(name))
    if value is None:
        raise KeyError(f"bench/libapi.py does not know what to ask for in {name} of {op}: give it a line, or the route one in LEFT_OUT")
    return value


class Case:
    """One way to ask a route: a name for people, and paths with ids at random."""
    def __init__(self, w, op, path, name, query, fixed):
        self.w, self.op, self.path, self.name, self.query, self.fixed = w, op, path, name, query, fixed

    def make(self):
        path = self.path
        for part in [p.split("}")[0] for p in path.split("{")[1:]]:
            value = self.fixed.get(part, known(PATH, self.op, part))
            path = path.replace("{%s}" % part, str(value(self.w) if callable(value) else value))
        pairs = []
        for name, value in self.query.items():
            value = value(self.w) if callable(value) else value
            pairs += [f"{name}={str(v).replace(' ', '%20')}" for v in (value if isinstance(value, list) else [value])]
        return path + ("?" + "&".join(pairs) if pairs else "")


def variants(doc, op, params):
    """(name, query) of a route: as it is, and with each filter and each order."""
    names = [p["name"] for p in params]
    base = dict(ALWAYS.get(op, {}))
    if "limit" in names:
        base["limit"] = 20
    if "offset" in names and "orderBy" in names:
        base["offset"] = 0
    yield "", base
    for p in params:
        name, values = p["name"], choices(doc, p)
        if name in PAGING | FOLLOWING:
            continue
        for value in values or [known(VALUES, op, name)]:
            query = {k: v for k, v in base.items() if k not in WITHOUT.get(name, [])}
            query[name] = value
            if name == "enableRegex":
                query["searchText"] = "batch [0-9]*7"
            shown = f"{name}={value}" if values else name
            query.update(WITH.get(shown, {}))
            if name.startswith("sort") and "orderBy" in names:
                for order in ("ORDER_BY_ASC", "ORDER_BY_DESC"):
                    yield f"{shown} {order[9:].lower()}", {**query, "orderBy": order}
            else:
                yield shown, query


def routes(doc):
    for path, methods in doc["paths"].items():
        op = methods.get("get", {})
        if op and op["operationId"] not in LEFT_OUT:
            yield path, op["operationId"], op.get("parameters", [])


def cases(w, doc=None):
    doc = doc or contract()
    out = []
    for path, op, params in routes(doc):
        query = [p for p in params if p["in"] == "query"]
        for p in params:
            if p["in"] == "path":
                known(PATH, op, p["name"])
        fixed = [("", {})]
        if op in EXPERIMENT_OPS:
            fixed.append((f" of {w.big} trials", {"experimentId": w.big_experiment, "id": w.big_experiment}))
        for of, where in fixed:
            for name, q in variants(doc, op, query):
                if where and "ids" in q:
                    q = {**q, "ids": w.big_experiment}
                out.append(Case(w, op, path, f"{op}{of} {name}".strip(), q, where))
    long = {"trialId": w.long_trial}
    by_op = {op: path for path, op, _ in routes(doc)}
    out.append(Case(w, "compare_trials", by_op["compare_trials"], "compare_trials of 1,000,000 reports",
                    {"trialIds": w.long_trial, "metricNames": "loss", "group": "long"}, {}))
    out.append(Case(w, "get_trial", by_op["get_trial"], "get_trial of 1,000,000 reports", {}, long))
    out.append(Case(w, "get_trial_workloads", by_op["get_trial_workloads"], "get_trial_workloads of 1,000,000 reports", {"limit": 20}, long))
    for op, waits in (("get_trial_why", lambda w: random.choice(w.waiting["trials"])), ("get_experiment_why", lambda w: w.waiting["experiment"])):
        out.append(Case(w, op, by_op[op], f"{op} of what waits", {}, {"id": waits}))
    out.append(Case(w, "get_experiments", by_op["get_experiments"], "get_experiments: det experiment list",
                    {"limit": 200, "offset": 0, "archived": "false", "users": VALUES["users"]}, {}))
    return out
