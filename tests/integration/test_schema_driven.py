"""Every constraint and trigger of the schema is either driven from outside here, or has a reason why nothing outside can.

The list is the database's own: one that a migration adds fails this test until it is told of below. What is driven is
asked for over the API, and answers a refusal or a result, never a 5xx; the master lives on. That a trigger was driven,
PostgreSQL's count of calls says.
"""
import os
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import paced  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from openapi import Api, Failed  # noqa: E402

ONE_ROW = "a table of one row, which a migration makes and nothing inserts into"
KEPT = "users are never deleted, and the id is looked up by the request that brings it"
LOOKED_UP = "the workspace is looked up by the request that brings its id; where it is deleted meanwhile, that is refused"
CHAIN = "written in the transaction that wrote the row it points to, and deleted with that"
COUNTED = "numbered by the core or a sequence, which give no number twice"
UPSERT = "written by ON CONFLICT, so that a repeat is no violation"
TRIGGERED = "a row of sums that triggers alone write"
HELD_AT = 3  # the batch at which the trial waits: it is not over before what is reported for it

# Without a driver; why.
REASONS = {
    "batches_one_check": ONE_ROW, "cluster_one_check": ONE_ROW, "leader_one_check": ONE_ROW,
    "batches_pkey": ONE_ROW, "cluster_pkey": ONE_ROW, "leader_pkey": ONE_ROW,
    "experiments_external": "who asks for a name that is taken gets its experiment; tests/integration/test_unmanaged.py",
    "trials_external": UPSERT,
    "checkpoints_gc_step_check": "the four steps are words of the master's own; tests/integration/test_gc.py goes through each",
    "accelerators_allocation_id_fkey": "the token names the allocation", "agent_users_user_id_fkey": KEPT,
    "allocations_experiment_id_fkey": CHAIN, "allocations_trial_id_fkey": CHAIN, "checkpoints_experiment_id_fkey": CHAIN,
    "checkpoints_trial_id_fkey": "the token names the trial", "experiment_bests_experiment_id_fkey": TRIGGERED,
    "experiment_sums_experiment_id_fkey": TRIGGERED, "experiments_owner_id_fkey": KEPT, "metric_heads_trial_id_fkey": TRIGGERED,
    "profiler_metrics_trial_id_fkey": "the token names the trial", "projects_user_id_fkey": KEPT,
    "search_events_experiment_id_fkey": CHAIN, "search_snapshots_experiment_id_fkey": CHAIN, "trials_experiment_id_fkey": CHAIN,
    "webhook_events_pkey": COUNTED, "webhook_log_hits_pkey": UPSERT, "webhook_log_hits_trigger_id_fkey": "the statement that writes it names the trigger",
    "webhook_triggers_pkey": COUNTED, "webhook_triggers_webhook_id_fkey": CHAIN, "webhooks_pkey": COUNTED, "webhooks_user_id_fkey": KEPT,
    "audit_pkey": COUNTED, "schema_version_pkey": "written by migrations alone", "functions_laid_pkey": "written by the start alone", "templates_user_id_fkey": KEPT,
    "user_sessions_user_id_fkey": KEPT, "user_settings_user_id_fkey": KEPT, "workspaces_user_id_fkey": KEPT,
    "allocations_pkey": COUNTED, "experiment_bests_pkey": TRIGGERED, "experiment_counts_pkey": TRIGGERED,
    "experiment_sums_pkey": TRIGGERED, "experiments_pkey": COUNTED, "label_counts_pkey": TRIGGERED, "lives_pkey": COUNTED,
    "metric_chunks_pkey": TRIGGERED, "metric_heads_pkey": TRIGGERED, "profiler_metrics_pkey": COUNTED, "projects_pkey": COUNTED,
    "search_events_pkey": COUNTED, "search_snapshots_pkey": UPSERT, "settings_pkey": UPSERT, "stores_pkey": UPSERT,
    "strays_pkey": COUNTED, "task_logs_pkey": COUNTED, "log_marks_pkey": TRIGGERED, "trial_timeline_pkey": UPSERT, "slot_uses_pkey": TRIGGERED, "slot_use_days_key": TRIGGERED, "trials_pkey": COUNTED,
    "user_sessions_pkey": "a digest of a random token", "users_pkey": COUNTED, "workspaces_pkey": COUNTED,
    "login_links_pkey": "a digest of a random token", "login_links_session_sha256_fkey": "of the session that asks; one that has ended makes none",
    "experiments_job_id_key": "a random id of the master's", "trials_experiment_id_request_id_key": "request ids follow from the search",
    "trials_task_id_key": "a digest of the leadership's nonce and the request",
    "page_views_pkey": COUNTED, "page_views_user_id_fkey": KEPT, "page_views_workspace_id_fkey": LOOKED_UP,
    "models_pkey": COUNTED, "models_user_id_fkey": KEPT, "models_workspace_id_fkey": LOOKED_UP, "model_versions_pkey": COUNTED,
    "model_versions_model_id_fkey": "model_register() has locked the model", "model_versions_user_id_fkey": KEPT,
    "model_versions_model_id_version_key": "model_register() counts under the model's lock",
    "model_versions_checkpoint_uuid_fkey": "model_register() has locked the checkpoint",
    "access_tokens_pkey": COUNTED, "access_tokens_token_sha256_key": "a digest of a random token", "access_tokens_user_id_fkey": KEPT,
    "trial_blocks_pkey": TRIGGERED, "trial_blocks_experiment_id_fkey": TRIGGERED, "trial_block_metrics_experiment_id_block_fkey": TRIGGERED,
    "best_trials_pkey": TRIGGERED, "best_trials_experiment_id_fkey": TRIGGERED, "best_numbers_experiment_id_fkey": TRIGGERED,
    "left_behind_pkey": UPSERT, "left_behind_place_fkey": CHAIN, "store_looks_pkey": UPSERT, "metric_steps_pkey": TRIGGERED,
    "metric_steps_experiment_id_fkey": TRIGGERED, "metric_names_once": TRIGGERED, "metric_names_experiment_id_fkey": TRIGGERED,
    "authority_is_one_check": "no INSERT names the column, which is true by default",
    "authority_pkey": UPSERT,
    "authority_former_pkey": "the database counts",
    "agent_join_tokens_pkey": "a digest of a random token", "agent_identities_pkey": UPSERT,
    "agent_certificates_pkey": "a digest of what the master has just signed",
    "agent_certificates_agent_id_fkey": "the statements that write a certificate write or read its agent's row",
    "groups_pkey": COUNTED, "group_members_pkey": UPSERT,
    "role_assignments_check": "a list of users' and one of groups', so that each entry has one of the two",
    "task_logs_once": "det-task's offsets; tests/unit/db/test_db_reports.c sends a line twice",
}


def refused(user, op, body=None, **params):
    """A refusal of the request's own: 4xx."""
    try:
        user.call(op, body, **params)
    except Failed as e:
        assert 400 <= e.status < 500, f"{op}: {e}"
        return
    raise AssertionError(f"{op} with {params} {body} was not refused")


def twice(user, op, body, **params):
    user.call(op, body, **params)
    refused(user, op, body, **params)


def grant(user, group, role, workspace):
    a = {"role": {"roleId": role}, "scopeWorkspaceId": workspace}
    return {"userRoleAssignments": [{"userId": user, "roleAssignment": a}] if user else [],
            "groupRoleAssignments": [{"groupId": group, "roleAssignment": a}] if group else []}


class Drive:
    """Each method drives what DRIVEN names for it."""

    def __init__(self, c):
        self.c, self.user = c, Api(c.port, c.token)
        self.holds = paced.Holds(c)
        self.holds.hold(HELD_AT)
        self.exp = paced.create(c, os.path.join("examples", "digits", "const.yaml"), 0, self.holds, **{"epochs: 12": "epochs: 2"})
        wait_until(lambda: c.trials(self.exp), 60, "a trial")
        self.trial = c.trials(self.exp)[0]["id"]

    def people(self):
        twice(self.user, "post_user", {"user": {"username": "ann", "active": True, "admin": False}, "password": "Long-enough-1"})

    def groups(self):
        """Members and roles that are not there; a name and an assignment that are."""
        twice(self.user, "post_group", {"name": "friends"})
        refused(self.user, "post_group", {"name": "strangers", "addUsers": [99999]})
        refused(self.user, "put_group", {"addUsers": [1]}, groupId=99999)
        for user, group, role, workspace in ((99999, None, 5, 1), (None, 99999, 5, 1), (1, None, 99, 1), (1, None, 5, 99999)):
            refused(self.user, "add_assignments", grant(user, group, role, workspace))
        for _ in range(2):  # a repeat is refused, or changes nothing
            try:
                self.user.call("add_assignments", grant(1, None, 5, 1))
            except Failed as e:
                assert 400 <= e.status < 500, e

    def agent_user(self):
        link = {"agentUserGroup": {"agentUid": 1, "agentGid": 1, "agentUser": "a", "agentGroup": "g"}}
        for _ in range(2):  # a repeat changes it
            self.user.call("patch_user", link, userId=1)

    def setting(self):
        for _ in range(2):
            self.user.call("post_user_setting", {"settings": [{"key": "k", "value": "v", "storagePath": "p"}]})

    def workspaces(self):
        twice(self.user, "post_workspace", {"name": "w"})
        ws = self.user.call("post_workspace", {"name": "w2"})["workspace"]["id"]
        twice(self.user, "post_project", {"name": "p"}, workspaceId=ws)
        refused(self.user, "post_project", {"name": "p"}, workspaceId=99999)

    def templates(self):
        body = {"name": "t", "config": {"description": "d"}}
        twice(self.user, "post_template", body, template__name="t")
        refused(self.user, "post_template", {**body, "name": "u", "workspaceId": 99999}, template__name="u")

    def views(self):
        twice(self.user, "post_view", {"name": "v", "address": "/det/experiments"})
        refused(self.user, "post_view", {"name": "w", "address": "/det/experiments", "workspaceId": 99999})

    def logs(self):
        task = self.c.sql(f"SELECT task_id FROM trials WHERE id = {self.trial}")
        self.user.call("post_task_logs", {"logs": [{"task_id": task, "log": "a line\n"}] * 2000})

    def models(self):
        twice(self.user, "post_model", {"name": "m"})
        refused(self.user, "post_model", {"name": "M"})

    def move(self):
        refused(self.user, "move_experiment", {"destinationProjectId": 99999}, experimentId=self.exp)

    def agents(self):
        for op in ("disable_agent", "disable_agent", "enable_agent"):
            self.user.call(op, {}, agentId="agent-0")

    def reports(self):
        """The trial's own, and the same once more: metrics, a checkpoint."""
        for group in ("g", "validation"):
            for _ in range(2):
                wait_until(lambda: self.is_reported(group), 60, "a run that is not over")

    def is_reported(self, group):
        """Not where the run ended meanwhile (its agent was disabled): the next one is reported for then."""
        run = int(self.c.sql(f"SELECT run_id FROM trials WHERE id = {self.trial}"))
        metrics = {"trialId": self.trial, "trialRunId": run, "stepsCompleted": 1, "metrics": {"avgMetrics": {"loss": 1}}}
        try:
            self.user.call("post_metrics", {"metrics": metrics, "group": group}, trialId=self.trial)
        except Failed as e:
            assert e.status == 409, e
            return False
        return True

    def many(self):
        """A search asks for a hundred trials at once, none of which runs: partitions are made ahead of them."""
        exp = self.c.create("name: many\nentrypoint: model_def:T\nhyperparameters: {}\nsearcher: {name: random, metric: loss, "
                            "max_trials: 100, max_concurrent_trials: 100, max_length: {batches: 1}}\n", None, activate=False)
        self.c.api("POST", f"/experiments/{exp}/kill")

    def life(self):
        """It ends, its checkpoints are there, labels and names change, and then it is deleted."""
        self.holds.release(HELD_AT)
        self.c.wait(self.exp, "STATE_COMPLETED", 120)
        assert int(self.c.sql(f"SELECT count(*) FROM checkpoints WHERE trial_id = {self.trial}")) > 0
        refused(self.user, "post_checkpoint", {"uuid": str(uuid.uuid4()), "taskId": "none.such", "resources": {}, "metadata": {}})
        self.user.call("patch_experiment", {"labels": ["one", "two"]}, experiment__id=self.exp)
        self.user.call("archive_experiment", {}, id=self.exp)
        self.user.call("delete_experiment", experimentId=self.exp)
        wait_until(lambda: self.c.sql(f"SELECT count(*) FROM experiments WHERE id = {self.exp}") == "0", 60, "the deletion")


# In this order; each with what it drives.
DRIVEN = {
    Drive.people: ["users_username_key"],
    Drive.groups: ["groups_name", "group_members_user_id_fkey", "group_members_group_id_fkey", "role_assignments_user_id_fkey",
                   "role_assignments_group_id_fkey", "role_assignments_role_id_check", "role_assignments_workspace_id_fkey",
                   "role_assignments_once"],
    Drive.agent_user: ["agent_users_pkey"],
    Drive.setting: ["user_settings_pkey"],
    Drive.workspaces: ["workspaces_name_key", "workspaces_name", "projects_workspace_id_name_key", "projects_name",
                       "projects_workspace_id_fkey"],
    Drive.templates: ["templates_pkey", "templates_workspace_id_fkey"],
    Drive.views: ["page_views_once"],
    Drive.logs: ["task_logs_marked"],
    Drive.models: ["models_name"],
    Drive.move: ["experiments_project_id_fkey"],
    Drive.agents: ["agent_settings_pkey"],
    Drive.reports: ["metrics_pkey", "metrics_validation"],
    Drive.many: ["trials_metric_partitions"],
    Drive.life: ["accelerators_pkey", "allocations_used", "allocations_used_at_once", "checkpoints_pkey", "experiments_counted", "experiments_keep_last_ids", "experiments_labeled",
                 "experiments_moved", "experiments_placed", "experiments_relabeled", "experiments_told", "experiments_told_new", "trials_close_chunks", "trials_drop_metrics",
                 "trials_named", "trials_renamed", "trials_summed", "trials_block_less", "trials_block_more", "trials_block_other", "experiments_best_first", "experiments_best_other", "checkpoints_changed", "checkpoints_summed", "checkpoints_validation"],
}

# Those of partitions are their parents'.
CATALOG = """
SELECT conname FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid WHERE t.relnamespace = 'public'::regnamespace
    AND NOT t.relispartition
UNION SELECT tgname FROM pg_trigger g JOIN pg_class t ON t.oid = g.tgrelid WHERE NOT tgisinternal AND NOT t.relispartition
UNION SELECT i.relname FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
    WHERE x.indisunique AND t.relnamespace = 'public'::regnamespace AND NOT t.relispartition
    AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = x.indexrelid)"""
# Deferred ones are judged at the commit, where no row can be named any more.
DEFERRED = "SELECT conname FROM pg_constraint WHERE condeferrable UNION SELECT tgname FROM pg_trigger WHERE tgdeferrable AND NOT tgisinternal"
IDLE = """
SELECT tgname || ' (' || p.proname || ')' FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid JOIN pg_class t ON t.oid = g.tgrelid
    LEFT JOIN pg_stat_user_functions s ON s.funcid = p.oid
    WHERE NOT tgisinternal AND NOT t.relispartition AND coalesce(s.calls, 0) = 0"""


def check_list(c):
    there = set(c.sql(CATALOG).split())
    driven = [name for names in DRIVEN.values() for name in names]
    told = set(driven) | set(REASONS)
    assert not there - told, f"neither driven nor with a reason: {sorted(there - told)}"
    assert not told - there, f"told of, but not in the schema: {sorted(told - there)}"
    assert len(driven) == len(set(driven)) and not set(driven) & set(REASONS), "told of twice"
    assert not c.sql(DEFERRED), f"deferred: {c.sql(DEFERRED)}"


def main():
    with Cluster(agents=1, slots=2, pg_args=["track_functions=all"]) as c:
        c.login()
        check_list(c)
        pid, drive = c.pid("master"), Drive(c)
        for method in DRIVEN:
            method(drive)
            assert c.procs["master"].poll() is None and c.pid("master") == pid, f"the master ended at {method.__name__}"
        try:
            wait_until(lambda: not c.sql(IDLE), 60, "calls of every trigger's function")
        except AssertionError as e:
            raise AssertionError(f"triggers that nothing here has driven: {c.sql(IDLE)}") from e
    print("test_schema_driven: passed")


if __name__ == "__main__":
    main()
