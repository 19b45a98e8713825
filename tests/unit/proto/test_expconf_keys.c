#include "expconf_schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "yamljson.h"
#include <string.h>

/*
 * One row a key of the configuration: a value that must be accepted and one that must be refused at
 * exactly that path. `with` are assignments made before. test_table_is_whole() holds this table
 * against the schema's own, so that no key is without a row.
 */
struct row {
    const char *path;
    const char *accept, *refuse;
    const char *with; /* "a.b=value;c=value" */
};

#define RANDOM "searcher={name: random, metric: loss, max_length: {batches: 5}, max_trials: 3}"
#define ASHA   "searcher={name: adaptive_asha, metric: l, max_length: {batches: 5}, max_trials: 3}"
#define HALVING                                                                                    \
    "searcher={name: async_halving, metric: loss, max_length: {batches: 5}, max_trials: 3, "       \
    "num_rungs: 2}"
#define CUSTOM        "searcher={name: custom, metric: loss}"
#define DEVICE        "resources={devices: [{host_path: /a, container_path: /b}]}"
#define STORE(fields) "checkpoint_storage={" fields "}"
#define S3            STORE("type: s3, bucket: b")
#define AZURE         STORE("type: azure, container: c, account_url: u")
#define PORTS         "environment={proxy_ports: [{proxy_port: 80}]}"
#define PYTHON        "environment={python: {interpreter: python3}}"
#define AUTH          "environment={registry_auth: {username: u}}"
#define MOUNT         "bind_mounts=[{host_path: /a, container_path: /b}]"
#define POLICY        "log_policies=[{pattern: x, action: {type: exclude_node}}]"

static const struct row rows[] = {
    {"name", "my name", "''", NULL},
    {"description", "text", "[]", NULL},
    {"labels", "[b, a, b]", "[1]", NULL},
    {"workspace", "w", "5", "project=p"},
    {"project", "p", "{}", "workspace=w"},
    {"entrypoint", "[python3, train.py]", "[]", NULL},
    {"hyperparameters", "{a: 1, b: {type: double, minval: 0, maxval: 1}}", "[]", NULL},
    {"searcher", "{name: grid, metric: m, max_length: {epochs: 1}}", "grid", NULL},
    {"searcher.name", "single", "hyperband", NULL},
    {"searcher.metric", "accuracy", "''", NULL},
    {"searcher.smaller_is_better", "false", "'no'", NULL},
    {"searcher.source_trial_id", "7", "0", NULL},
    {"searcher.source_checkpoint_uuid", "5f9a7f8c-2faa-4497-b5a6-16b7c0cc21d8", "../x", NULL},
    {"searcher.max_length", "{records: 1e3}", "{batches: 0}", NULL},
    {"searcher.max_trials", "1", "0", RANDOM},
    {"searcher.max_concurrent_trials", "0", "-1", RANDOM},
    {"searcher.mode", "aggressive", "fast", ASHA},
    {"searcher.divisor", "2.5", "1", ASHA},
    {"searcher.max_rungs", "1", "0", ASHA},
    {"searcher.bracket_rungs", "[1, 2]", "[0]", ASHA},
    {"searcher.stop_once", "true", "1", ASHA},
    {"searcher.num_rungs", "3", "0", HALVING},
    {"searcher.unit", "epochs", "hours", CUSTOM},

    {"resources", "{slots_per_trial: 2}", "2", NULL},
    {"resources.slots_per_trial", "0", "-1", NULL},
    {"resources.resource_pool", "gpus", "1", NULL},
    {"resources.max_slots", "4", "-1", NULL},
    {"resources.weight", "0.5", "0", NULL},
    {"resources.priority", "99", "100", NULL},
    {"resources.shm_size", "1.5 GiB", "4 cores", NULL},
    {"resources.devices", "['/dev/a:/dev/b:r']", "['/dev/a']", NULL},
    {"resources.devices[].host_path", "/dev/x", "dev", DEVICE},
    {"resources.devices[].container_path", "/dev/x", "dev", DEVICE},
    {"resources.devices[].mode", "rw", "rx", DEVICE},
    {"resources.native_parallel", "true", "0", NULL},
    {"resources.agent_label", "x", "5", NULL},
    {"resources.slots", "1", "one", NULL},

    {"checkpoint_storage", "{type: directory, container_path: /c}", "/tmp", NULL},
    {"checkpoint_storage.type", "shared_fs", "hdfs", NULL},
    {"checkpoint_storage.save_experiment_best", "2", "-1", NULL},
    {"checkpoint_storage.save_trial_best", "0", "1.5", NULL},
    {"checkpoint_storage.save_trial_latest", "0", "none", NULL},
    {"checkpoint_storage.host_path", "/mnt", "mnt", NULL},
    {"checkpoint_storage.storage_path", "/checkpoints/sub", "../up", NULL},
    {"checkpoint_storage.propagation", "shared", "''", NULL},
    {"checkpoint_storage.container_path", "/c", "5", STORE("type: directory, container_path: /x")},
    {"checkpoint_storage.checkpoint_path", "x", "5", NULL},
    {"checkpoint_storage.tensorboard_path", "x", "5", NULL},
    {"checkpoint_storage.bucket", "b", "''", S3},
    {"checkpoint_storage.access_key", "k", "5", S3},
    {"checkpoint_storage.secret_key", "k", "5", S3},
    {"checkpoint_storage.endpoint_url", "http://x", "5", S3},
    {"checkpoint_storage.prefix", "a/b", "a/../b", S3},
    {"checkpoint_storage.container", "c", "''", AZURE},
    {"checkpoint_storage.connection_string", "c", "5", STORE("type: azure, container: c")},
    {"checkpoint_storage.account_url", "u", "5", AZURE},
    {"checkpoint_storage.credential", "c", "5", AZURE},

    {"checkpoint_policy", "none", "some", NULL},
    {"min_checkpoint_period", "{epochs: 1}", "5", NULL},
    {"min_validation_period", "{records: 0}", "{batches: 1, epochs: 1}", NULL},
    {"perform_initial_validation", "true", "yes", NULL},
    {"max_restarts", "0", "-1", NULL},
    {"stall_timeout", "30", "-1", NULL},
    {"stop_on_nan", "true", "1", NULL},
    {"hold_failing_search", "false", "1", NULL},
    {"scheduling_unit", "1", "0", NULL},
    {"records_per_epoch", "5", "-5", NULL},
    {"reproducibility", "{experiment_seed: 1}", "1", NULL},
    {"reproducibility.experiment_seed", "4294967295", "4294967296", NULL},

    {"environment", "{}", "[]", NULL},
    {"environment.image", "{gpu: x, cpu: y}", "{tpu: x}", NULL},
    {"environment.environment_variables", "{cuda: [A=1]}", "[A]", NULL},
    {"environment.python", "/opt/venv", "7", NULL},
    {"environment.python.requirements", "['a==1 --hash=sha256:00', b]", "['-r x']", PYTHON},
    {"environment.python.constraints", "['a<2']", "['./a']", PYTHON},
    {"environment.python.index_url", "https://x/simple", "''", PYTHON},
    {"environment.python.extra_index_urls", "[https://x/simple]", "[--pre]", PYTHON},
    {"environment.python.system_site_packages", "true", "1", PYTHON},
    {"environment.python.interpreter", "python3.11", "-c", PYTHON},
    {"environment.proxy_ports", "[{proxy_port: 1}]", "[1]", NULL},
    {"environment.proxy_ports[].proxy_port", "65535", "65536", PORTS},
    {"environment.proxy_ports[].proxy_tcp", "true", "1", PORTS},
    {"environment.proxy_ports[].unauthenticated", "true", "1", PORTS},
    {"environment.proxy_ports[].default_service_id", "true", "1", PORTS},
    {"environment.ports", "{web: 80}", "{web: x}", NULL},
    {"environment.force_pull_image", "true", "1", NULL},
    {"environment.registry_auth", "{username: u}", "u", NULL},
    {"environment.registry_auth.username", "u", "1", AUTH},
    {"environment.registry_auth.password", "u", "1", AUTH},
    {"environment.registry_auth.auth", "u", "1", AUTH},
    {"environment.registry_auth.email", "u", "1", AUTH},
    {"environment.registry_auth.serveraddress", "u", "1", AUTH},
    {"environment.registry_auth.identitytoken", "u", "1", AUTH},
    {"environment.registry_auth.registrytoken", "u", "1", AUTH},
    {"environment.add_capabilities", "[SYS_PTRACE]", "SYS_PTRACE", NULL},
    {"environment.drop_capabilities", "[]", "[1]", NULL},
    {"environment.pod_spec", "{any: [thing]}", "[]", NULL},

    {"bind_mounts", "[{host_path: /a, container_path: b}]", "{}", NULL},
    {"bind_mounts[].host_path", "/a", "a", MOUNT},
    {"bind_mounts[].container_path", "sub", ".", MOUNT},
    {"bind_mounts[].read_only", "true", "1", MOUNT},
    {"bind_mounts[].propagation", "shared", "''", MOUNT},

    {"data", "{any: {thing: [1, null]}}", "[]", NULL},
    {"debug", "true", "debug", NULL},
    {"retention_policy", "{log_retention_days: 0}", "7", NULL},
    {"retention_policy.log_retention_days", "-1", "-2", NULL},
    {"log_policies", "[{pattern: x, action: {type: cancel_retries}}]", "[x]", NULL},
    {"log_policies[].pattern", "y", "''", POLICY},
    {"log_policies[].action", "{type: cancel_retries}", "cancel_retries", POLICY},
    {"log_policies[].action.type", "cancel_retries", "restart", POLICY},

    {"profiling", "{enabled: true}", "true", NULL},
    {"profiling.enabled", "true", "1", NULL},
    {"profiling.begin_on_batch", "5", "-1", NULL},
    {"profiling.end_after_batch", "5", "-1", NULL},
    {"profiling.sync_timings", "false", "0", NULL},

    {"optimizations", "{}", "[]", NULL},
    {"optimizations.aggregation_frequency", "2", "0", NULL},
    {"optimizations.average_aggregated_gradients", "false", "0", NULL},
    {"optimizations.average_training_metrics", "false", "0", NULL},
    {"optimizations.gradient_compression", "true", "1", NULL},
    {"optimizations.grad_updates_size_file", "f", "1", NULL},
    {"optimizations.mixed_precision", "O1", "O4", NULL},
    {"optimizations.tensor_fusion_threshold", "0", "-1", NULL},
    {"optimizations.tensor_fusion_cycle_time", "5", "x", NULL},
    {"optimizations.auto_tune_tensor_fusion", "true", "1", NULL},

    {"slurm", "{}", "[]", NULL},
    {"slurm.slots_per_node", "1", "0", NULL},
    {"slurm.gpu_type", "x", "1", NULL},
    {"slurm.sbatch_args", "[a]", "a", NULL},
    {"pbs", "{}", "[]", NULL},
    {"pbs.slots_per_node", "1", "0", NULL},
    {"pbs.pbsbatch_args", "[a]", "a", NULL},

    {"data_layer", "{type: shared_fs}", NULL, NULL}, /* legacy: whatever it is, it is dropped */
    {"internal", "null", "{}", NULL},
    {"security", "{}", NULL, NULL},
    {"tensorboard_storage", "{type: s3}", NULL, NULL},
};

static const char base[] = "entrypoint: m:T\n"
                           "searcher: {name: single, metric: loss, max_length: {batches: 10}}\n"
                           "checkpoint_storage: {type: shared_fs, host_path: /checkpoints}\n";

static json_t *yaml(const char *text)
{
    json_t *j = NULL;
    struct det_err err;
    if (yamljson_parse(text, strlen(text), &j, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return j;
}

/* config[path] = value, where "[]" is the first item of a list and maps are made on the way. */
static void assign(json_t *config, const char *path, json_t *value)
{
    json_t *at = config;
    while (strchr(path, '.')) {
        size_t n = strcspn(path, ".");
        bool item = path[n - 1] == ']';
        det_cleanup(freep) char *name = det_strndup(path, item ? n - 2 : n);
        if (!json_object_get(at, name))
            json_set(at, name, json_object());
        at = json_object_get(at, name);
        at = item ? json_array_get(at, 0) : at;
        path += n + 1;
    }
    json_set(at, path, value);
}

/* The configuration of a row with this value, and its mistakes. Returns what expconf_complete did.
 */
static int attempt(const struct row *row, const char *value, struct mistakes *m)
{
    JSON_OWN config = yaml(base);
    det_cleanup(freep) char *with = det_strdup(row->with ? row->with : "");
    char *equals = strchr(with, '=');
    if (equals) {
        *equals = '\0';
        json_set(config, with, yaml(equals + 1));
    }
    assign(config, row->path, yaml(value));
    const struct expconf_defaults d = {.wall_s = 1};
    json_t *stored = NULL;
    int rc = expconf_complete(config, &d, &stored, m, NULL);
    json_decref(stored);
    return rc;
}

/* "bind_mounts[].host_path" -> "bind_mounts[0].host_path: " */
static bool names_path(const struct mistakes *m, const char *path)
{
    struct buf want = BUF_INIT;
    for (const char *s = path; *s; s++) {
        buf_add_ch(&want, *s);
        if (*s == '[')
            buf_add_ch(&want, '0');
    }
    buf_add_ch(&want, ':');
    bool found = false;
    for (const char *line = buf_str(&m->text); *line && !found; line = strchr(line, '\n') + 1)
        found = strncmp(line, want.p, want.len) == 0;
    buf_finish(&want);
    return found;
}

/* Rows whose kind is only refused by name: the key itself must be fine. */
static bool of_later_kind(const struct row *row)
{
    static const char *const later[] = {S3, AZURE};
    for (size_t i = 0; row->with && i < DET_ARRAY_LEN(later); i++)
        if (strcmp(row->with, later[i]) == 0)
            return true;
    return row->with && strstr(row->with, "azure");
}

static void test_accept(void **state)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(rows); i++) {
        struct mistakes m = MISTAKES_INIT;
        int rc = attempt(&rows[i], rows[i].accept, &m);
        bool refused = of_later_kind(&rows[i]) ? m.n != 1 || names_path(&m, rows[i].path) : rc != 0;
        if (refused)
            fail_msg("%s = %s was refused:\n%s", rows[i].path, rows[i].accept, buf_str(&m.text));
        mistakes_finish(&m);
    }
}

static void test_refuse(void **state)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(rows); i++) {
        struct mistakes m = MISTAKES_INIT;
        if (rows[i].refuse &&
            (attempt(&rows[i], rows[i].refuse, &m) == 0 || !names_path(&m, rows[i].path)))
            fail_msg("%s = %s was not refused there:\n%s", rows[i].path, rows[i].refuse,
                     buf_str(&m.text));
        mistakes_finish(&m);
    }
}

/* null is "not given" for every key that is not required. */
static void test_null(void **state)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(rows); i++) {
        const char *dot = strrchr(rows[i].path, '.');
        det_cleanup(freep) char *prefix =
            det_strndup(rows[i].path, dot ? (size_t)(dot - rows[i].path) : 0);
        const struct expconf_key *key = expconf_key_find(prefix, dot ? dot + 1 : rows[i].path);
        struct mistakes m = MISTAKES_INIT;
        attempt(&rows[i], "null", &m);
        bool may_be_missing = !key->required || strcmp(rows[i].path, "name") == 0;
        bool by_rule = strcmp(rows[i].path, "entrypoint") == 0 ||
                       strcmp(rows[i].path, "checkpoint_storage.container_path") == 0 ||
                       strcmp(rows[i].path, "workspace") == 0 ||
                       strcmp(rows[i].path, "project") == 0;
        if (!by_rule && names_path(&m, rows[i].path) == may_be_missing)
            fail_msg("%s = null:\n%s", rows[i].path, buf_str(&m.text));
        mistakes_finish(&m);
    }
}

static bool takes(const char *name, json_t *value)
{
    JSON_OWN v = value;
    return expconf_key_find("environment.python", name)->ok(v);
}

/* The list, or the interpreter, without a map. */
static bool takes_short(json_t *value)
{
    JSON_OWN v = value;
    return expconf_key_find("environment", "python")->ok(v);
}

static json_t *list_of(const char *item, size_t n)
{
    json_t *list = json_array();
    while (n--)
        json_array_append_new(list, json_string(item));
    return list;
}

static json_t *long_text(size_t n)
{
    det_cleanup(freep) char *text = det_zalloc(n + 1);
    memset(text, 'x', n);
    return json_string(text);
}

/* What an agent would not take is refused when it is asked for. */
static void test_limits_of_python(void **state)
{
    assert_true(takes("interpreter", long_text(4096)));
    assert_false(takes("interpreter", long_text(4097)));
    assert_true(takes("index_url", long_text(10000)));
    assert_false(takes("index_url", long_text(10001)));
    assert_true(takes("extra_index_urls", list_of("x", 100)));
    assert_false(takes("extra_index_urls", list_of("x", 101)));
    assert_true(takes("requirements", list_of("x", 10000)));
    assert_false(takes("requirements", list_of("x", 10001)));
}

static void test_requirements(void **state)
{
    static const char *const good[] = {"a",
                                       "a==1.0",
                                       "A[x, y] >= 1, < 2 ; python_version < \"3.11\"",
                                       "a\t==1",
                                       "a == 1 --hash=sha256:00 --hash=sha256:11",
                                       "a @ https://h/a.whl",
                                       "a@https://h/x@y/a.zip",
                                       "a[x] @ git+https://u@h/r.git@v1#egg=a",
                                       "https://h/a-1.0.tar.gz",
                                       "git+ssh://git@h/r.git",
                                       "a==1  # of /team/x",
                                       "caf\xc3\xa9",
                                       "backports.lzma",
                                       "file",
                                       "a.b-c_d==1.*"};
    static const char *const bad[] = {"",
                                      "-r x",
                                      " -r x",
                                      "--pre",
                                      "a\n-r x",
                                      "a\r-r x",
                                      "a\x0b-r x",
                                      "a\x0c-r x",
                                      "a\x1c-r x",
                                      "a\xc2\x85-r x",
                                      "a\xe2\x80\xa8-r x",
                                      "a\xe2\x80\xa9-r x",
                                      "./a",
                                      "../a",
                                      "/a",
                                      " ./a",
                                      "a/b",
                                      "file:///a",
                                      "FILE:a",
                                      "git+file:///a",
                                      "x @ file:///p",
                                      "x@file:p",
                                      "x @ FILE:///p",
                                      "x[a] @ ./p",
                                      "x @ /p",
                                      "x @ p/q",
                                      "x @ q.whl",
                                      "x @ git+file:///p",
                                      "a-1.0-py3-none-any.whl",
                                      "a.TAR.GZ",
                                      "a.zip ; python_version > \"3\""};
    for (size_t i = 0; i < DET_ARRAY_LEN(good); i++)
        if (!takes("requirements", list_of(good[i], 1)) ||
            !takes("constraints", list_of(good[i], 1)))
            fail_msg("'%s' was refused", good[i]);
    for (size_t i = 0; i < DET_ARRAY_LEN(bad); i++)
        if (takes("requirements", list_of(bad[i], 1)) || takes("constraints", list_of(bad[i], 1)) ||
            takes_short(list_of(bad[i], 1)))
            fail_msg("'%s' was not refused", bad[i]);
    assert_true(takes_short(list_of("a==1", 1)) && takes_short(json_string("/opt/venv")));
    assert_false(takes_short(json_string("")));
    assert_false(takes_short(json_string("a\nb")));
    assert_false(takes("index_url", json_string("x\x0by")));
}

static void test_table_is_whole(void **state)
{
    for (size_t i = 0; i < expconf_keys_n; i++) {
        size_t k = 0;
        while (k < DET_ARRAY_LEN(rows) && strcmp(rows[k].path, expconf_keys[i].path) != 0)
            k++;
        if (k == DET_ARRAY_LEN(rows))
            fail_msg("%s has no row", expconf_keys[i].path);
    }
    assert_int_equal(DET_ARRAY_LEN(rows), expconf_keys_n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_is_whole),   cmocka_unit_test(test_accept),
        cmocka_unit_test(test_refuse),           cmocka_unit_test(test_null),
        cmocka_unit_test(test_limits_of_python), cmocka_unit_test(test_requirements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
