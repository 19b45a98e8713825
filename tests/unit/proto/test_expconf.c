#include "expconf_schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "mem.h"
#include "yamljson.h"
#include <stdio.h>
#include <string.h>

static const char smallest[] =
    "entrypoint: model_def:T\n"
    "searcher: {name: single, metric: loss, max_length: {batches: 1000}}\n"
    "checkpoint_storage: {type: shared_fs, host_path: /ck}\n";

static const struct expconf_defaults defaults = {.wall_s = 1700000000, .name_seed = 12345};

static json_t *complete(const char *yaml)
{
    json_t *config = NULL;
    struct det_err err;
    if (expconf_parse(yaml, strlen(yaml), &defaults, &config, NULL, &err) < 0)
        fail_msg("%s\n%s", yaml, err.text);
    return config;
}

static void assert_part(const json_t *config, const char *path, const char *want)
{
    det_cleanup(freep) char *text = json_text(json_path(config, path));
    assert_string_equal(text, want);
}

#define IMAGE "determinedai/environments:"

static void test_stored_form(void **state)
{
    static const char *const parts[][2] = {
        {"bind_mounts", "[]"},
        {"checkpoint_policy", "\"best\""},
        {"checkpoint_storage",
         "{\"checkpoint_path\":null,\"container_path\":null,\"host_path\":\"/"
         "ck\",\"propagation\":\"rprivate\","
         "\"save_experiment_best\":0,\"save_trial_best\":1,\"save_trial_latest\":1,"
         "\"storage_path\":null,\"tensorboard_path\":null,\"type\":\"shared_fs\"}"},
        {"data", "{}"},
        {"debug", "false"},
        {"description", "null"},
        {"entrypoint", "\"model_def:T\""},
        {"environment",
         "{\"add_capabilities\":[],\"drop_capabilities\":[],"
         "\"environment_variables\":{\"cpu\":[],\"cuda\":[],\"rocm\":[]},\"force_pull_image\":"
         "false,"
         "\"image\":{\"cpu\":\"" IMAGE "py-3.9-pytorch-1.12-tf-2.11-cpu-622d512\",\"cuda\":\"" IMAGE
         "cuda-11.3-pytorch-1.12-tf-2.11-gpu-622d512\",\"rocm\":\"" IMAGE
         "rocm-5.0-pytorch-1.10-tf-2.7-rocm-622d512\"},"
         "\"pod_spec\":null,\"ports\":{},\"proxy_ports\":[],\"registry_auth\":null}"},
        {"hyperparameters", "{}"},
        {"labels", "[]"},
        {"log_policies", "[]"},
        {"max_restarts", "5"},
        {"min_checkpoint_period", "{\"batches\":0}"},
        {"min_validation_period", "{\"batches\":0}"},
        {"optimizations", "{\"aggregation_frequency\":1,\"auto_tune_tensor_fusion\":false,"
                          "\"average_aggregated_gradients\":true,\"average_training_metrics\":true,"
                          "\"grad_updates_size_file\":null,\"gradient_compression\":false,\"mixed_"
                          "precision\":\"O0\","
                          "\"tensor_fusion_cycle_time\":1,\"tensor_fusion_threshold\":64}"},
        {"pbs", "{}"},
        {"perform_initial_validation", "false"},
        {"profiling",
         "{\"begin_on_batch\":0,\"enabled\":false,\"end_after_batch\":null,\"sync_timings\":true}"},
        {"project", "\"\""},
        {"records_per_epoch", "0"},
        {"reproducibility", "{\"experiment_seed\":1700000000}"},
        {"resources",
         "{\"agent_label\":null,\"devices\":[],\"max_slots\":null,\"native_parallel\":false,"
         "\"priority\":null,\"resource_pool\":\"\",\"shm_size\":null,\"slots\":null,"
         "\"slots_per_trial\":1,\"weight\":1}"},
        {"retention_policy", "null"},
        {"scheduling_unit", "100"},
        {"searcher",
         "{\"max_length\":{\"batches\":1000},\"metric\":\"loss\",\"name\":\"single\","
         "\"smaller_is_better\":true,\"source_checkpoint_uuid\":null,\"source_trial_id\":null}"},
        {"slurm", "{}"},
        {"workspace", "\"\""},
    };
    JSON_OWN config = complete(smallest);
    for (size_t i = 0; i < DET_ARRAY_LEN(parts); i++)
        assert_part(config, parts[i][0], parts[i][1]);
    assert_int_equal(json_object_size(config), DET_ARRAY_LEN(parts) + 1);
    det_cleanup(freep) char *words = expconf_three_words(12345);
    det_cleanup(freep) char *name = det_asprintf("Experiment (%s)", words);
    assert_string_equal(json_str(config, "name", ""), name);
}

static const char everything[] =
    "name: all\nlabels: [b, a, b]\nentrypoint: [python3, t.py]\nworkspace: w\nproject: p\n"
    "hyperparameters: {lr: {type: log, base: 10, minval: -4, maxval: -1, count: 3}, n: 64,\n"
    "  net: {depth: {type: int, minval: 1, maxval: 3, count: 2}, act: [relu, tanh]}}\n"
    "searcher: {name: grid, metric: acc, smaller_is_better: false, max_length: {epochs: 3}}\n"
    "resources: {slots_per_trial: 2, shm_size: 1.5 GiB, devices: ['/a:/b', {host_path: /c, "
    "container_path: /d}]}\n"
    "checkpoint_storage: {type: directory, container_path: /ck, save_trial_best: 0}\n"
    "environment: {image: {gpu: g}, environment_variables: [A=1], registry_auth: {username: u}}\n"
    "bind_mounts: [{host_path: /x, container_path: y}]\n"
    "log_policies: [{pattern: p, action: {type: exclude_node}}]\n"
    "security: {old: 1}\ndata: {z: null, a: 1}\nmin_validation_period: {batches: 1e2}\n";

static void test_idempotent(void **state)
{
    static const char *const texts[] = {smallest, everything};
    for (size_t i = 0; i < DET_ARRAY_LEN(texts); i++) {
        JSON_OWN once = complete(texts[i]);
        det_cleanup(freep) char *text = json_text(once);
        JSON_OWN twice = complete(text);
        det_cleanup(freep) char *again = json_text(twice);
        assert_string_equal(text, again);
    }
}

static void test_normalised(void **state)
{
    JSON_OWN c = complete(everything);
    assert_part(c, "labels", "[\"a\",\"b\"]");
    assert_part(c, "resources.shm_size", "1610612736");
    assert_part(c, "resources.devices",
                "[{\"container_path\":\"/b\",\"host_path\":\"/a\",\"mode\":\"mrw\"},"
                "{\"container_path\":\"/d\",\"host_path\":\"/c\",\"mode\":\"mrw\"}]");
    assert_part(c, "environment.image.cuda", "\"g\"");
    assert_null(json_path(c, "environment.image.gpu"));
    assert_part(c, "environment.environment_variables",
                "{\"cpu\":[\"A=1\"],\"cuda\":[\"A=1\"],\"rocm\":[\"A=1\"]}");
    assert_part(c, "hyperparameters.n", "{\"type\":\"const\",\"val\":64}");
    assert_part(c, "hyperparameters.net.act.val", "[\"relu\",\"tanh\"]");
    assert_part(c, "data", "{\"a\":1,\"z\":null}");
    assert_part(c, "min_validation_period", "{\"batches\":100}");
    assert_part(c, "bind_mounts",
                "[{\"container_path\":\"y\",\"host_path\":\"/"
                "x\",\"propagation\":\"rprivate\",\"read_only\":false}]");
    assert_part(c, "searcher.max_concurrent_trials", "16");
    assert_null(json_object_get(c, "security"));
}

static void test_sizes(void **state)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {{"4g", INT64_C(4) << 30},
                {"1.5 GiB", 1610612736},
                {"2GB", INT64_C(2) << 30},
                {"512", 512},
                {"10 k", 10240},
                {"1Mb", 1 << 20},
                {"1 b", 1},
                {"0", 0}};
    static const char *const bad[] = {"",       "g",   "-1g",   "4 gg", "4  g",
                                      "1.2.3g", "4g ", "9999p", ".g",   "4x"};
    int64_t n;
    for (size_t i = 0; i < DET_ARRAY_LEN(good); i++) {
        JSON_OWN v = json_string(good[i].text);
        assert_true(expconf_size(v, &n) && n == good[i].bytes);
    }
    for (size_t i = 0; i < DET_ARRAY_LEN(bad); i++) {
        JSON_OWN v = json_string(bad[i]);
        if (expconf_size(v, &n))
            fail_msg("size \"%s\" was accepted as %lld", bad[i], (long long)n);
    }
}

static void test_all_mistakes_at_once(void **state)
{
    static const char text[] =
        "nam: x\nmax_restarts: -1\nsearcher: {name: single, max_length: 1.5, max_trials: 3}\n"
        "resources: {priority: high}\nhyperparameters: {lr: {type: dubble}}\n";
    static const char *const lines[] = {
        "configuration: 9 mistakes:",
        "nam: unknown key; did you mean name?",
        "searcher.max_trials: not a key of searcher single; it belongs to: random adaptive_asha "
        "async_halving",
        "max_restarts: expected a whole number from 0, got -1",
        "searcher.max_length: expected a length: exactly one of batches, records, epochs, with a "
        "whole "
        "number from 1, got 1.5; write e.g. {batches: 1000}",
        "resources.priority: expected a whole number from 1 to 99, got \"high\"",
        "hyperparameters.lr.type: expected one of const, int, double, log, categorical, got "
        "\"dubble\"",
        "searcher.metric: missing; write e.g. validation_loss",
        "checkpoint_storage: missing; write e.g. {type: shared_fs, host_path: /checkpoints}",
        "entrypoint: missing; write e.g. model_def:MyTrial, or a command such as python3 train.py",
    };
    struct det_err err;
    struct mistakes m = MISTAKES_INIT;
    json_t *config = NULL;
    assert_int_equal(expconf_parse(text, strlen(text), &defaults, &config, &m, &err), DET_EINVAL);
    for (size_t i = 0; i < DET_ARRAY_LEN(lines); i++)
        if (!strstr(err.text, lines[i]))
            fail_msg("\"%s\" is not in:\n%s", lines[i], err.text);
    assert_int_equal(m.n, 9);
    assert_null(config);
    mistakes_finish(&m);
}

static void assert_refused(const char *more, const char *want)
{
    det_cleanup(freep) char *text = det_asprintf("%s%s\n", smallest, more);
    JSON_OWN config = NULL;
    struct det_err err;
    JSON_OWN raw = NULL;
    if (strchr(more, '=')) { /* an override of the smallest */
        assert_int_equal(yamljson_parse(smallest, strlen(smallest), &raw, &err), 0);
        assert_int_equal(expconf_override(raw, more, &err), 0);
        assert_int_equal(expconf_complete(raw, &defaults, &config, NULL, &err), DET_EINVAL);
    } else {
        assert_int_equal(expconf_parse(text, strlen(text), &defaults, &config, NULL, &err),
                         DET_EINVAL);
    }
    if (!strstr(err.text, want))
        fail_msg("\"%s\" is not in: %s", want, err.text);
}

static void test_refused(void **state)
{
    assert_refused("entrypoint=model_def.py",
                   "entrypoint: \"model_def.py\" would be run as a command that is looked for on "
                   "PATH only: write python3 model_def.py for a program, or model_def:Class for a "
                   "trial");
    assert_refused("entrypoint=\"model_def: MyTrial\"",
                   "entrypoint: \"model_def: MyTrial\" would be run as a command; a trial is named "
                   "module:Class without blanks: write model_def:MyTrial");
    assert_refused("entrypoint=model_def.MyTrial",
                   "entrypoint: \"model_def.MyTrial\" would be run as a command; a trial is named "
                   "module:Class: write model_def:MyTrial");
    assert_refused("searcher={name: adaptive, metric: m, target: 5}",
                   "configuration: searcher.name: adaptive is not available in this version; "
                   "use adaptive_asha");
    assert_refused("searcher={name: adaptive_simple, metric: m, maxlen: 5}", "adaptive_simple is");
    assert_refused("searcher={name: sync_halving, metric: m, budget: 5}", "sync_halving is");
    assert_refused(
        "searcher={name: async_halving, metric: m, max_length: 5, max_trials: 2, num_rungs: 2}",
        "needs a length with a unit");
    assert_refused(
        "checkpoint_storage={type: s3, bucket: b}",
        "checkpoint_storage.type: s3 is not available in this version; use shared_fs or directory");
    assert_refused("searcher.max_length={batches: 10, epochs: 2}",
                   "got {\"batches\":10,\"epochs\":2}");
    assert_refused("searcher.max_length={batches: -10}", "got {\"batches\":-10}; write e.g.");
    assert_refused("searcher={name: adaptive_asha, bracket_rungs: [2, 0]}", "from 1, got [2,0]");
    assert_refused("max_restarts: 2147483648", "from 0 to 2147483647, got 2147483648");
    assert_refused("checkpoint_storage={type: azure, container: b}", "azure needs either");
    assert_refused("checkpoint_storage={type: directory}", "container_path: missing");
    assert_refused("checkpoint_storage.storage_path=/other", "must lie below host_path");
    assert_refused("checkpoint_storage.storage_path=/ckx", "must lie below host_path");
    assert_refused("workspace: w", "project: missing");
    assert_refused("integrations: {}", "integrations: unknown key");
    assert_refused("retention_policy: {log_retention_days: -2}",
                   "retention_policy.log_retention_days");
    assert_refused("retention_policy: {log_retention_days: 32768}",
                   "retention_policy.log_retention_days");
    assert_refused("retention_policy: {log_retention_days: soon}",
                   "retention_policy.log_retention_days");
    assert_refused("retention_policy: {days: 1}", "retention_policy.days: unknown key");
    assert_refused("profiling: {begin_on_batch: 5, end_after_batch: 4}",
                   "profiling.end_after_batch");
    assert_refused("environment: {image: {gpu: a, cuda: b}}", "environment.image");
    assert_refused("name: x\nname: y", "line 5, column 1: key given twice: \"name\"");
    assert_refused("log_policies: [{pattern: a, action: {type: exclude_node}}, "
                   "{pattern: 'a(b', action: {type: cancel_retries}}]",
                   "log_policies[1].pattern: a ( that is not closed, in \"a(b\"");
    assert_refused("log_policies: [{pattern: '(a)\\1', action: {type: cancel_retries}}]",
                   "log_policies[0].pattern: back references are not available, at character 5");
    assert_refused("resources={devices: [{host_path: /a}]}",
                   "resources.devices[0].container_path: missing");
}

/* One variable of so many bytes, and how many of them: what exec takes. */
static bool fit(size_t bytes, int n, bool by_device)
{
    struct det_err err;
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    buf_addf(&text, "%senvironment:\n  environment_variables: %s[", smallest,
             by_device ? "{cuda: " : "");
    for (int i = 0; i < n; i++)
        buf_addf(&text, "A%03d=%0*d, ", i, (int)bytes - 5, 1);
    buf_addf(&text, "]%s\n", by_device ? "}" : "");
    JSON_OWN config = NULL;
    int rc = expconf_parse(buf_str(&text), text.len, &defaults, &config, NULL, &err);
    if (rc < 0 && !strstr(err.text, "less than 128 KiB each"))
        fail_msg("%s", err.text);
    return rc == 0;
}

static void test_variables_that_exec_takes(void **state)
{
    for (int by_device = 0; by_device < 2; by_device++) {
        assert_true(fit((128 << 10) - 1, 1, by_device));
        assert_false(fit(128 << 10, 1, by_device));
        assert_true(fit(64 << 10, 16, by_device));
        assert_false(fit(64 << 10, 17, by_device));
    }
}

static void test_grid_needs_counts(void **state)
{
    static const char text[] =
        "entrypoint: m:T\ncheckpoint_storage: {type: shared_fs, host_path: /ck}\n"
        "searcher: {name: grid, metric: m, max_length: {batches: 1}}\n"
        "hyperparameters: {a: {b: {type: int, minval: 1, maxval: 9}},\n"
        "  l: [{type: log, base: 2, minval: 1, maxval: 2}], c: {type: categorical, vals: [1]}}\n";
    struct det_err err;
    json_t *config = NULL;
    assert_int_equal(expconf_parse(text, strlen(text), &defaults, &config, NULL, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "2 mistakes"));
    assert_non_null(strstr(err.text, "hyperparameters.a.b: the grid searcher needs a count"));
    assert_non_null(strstr(err.text, "hyperparameters.l[0]: the grid searcher needs a count"));
}

static json_t *partial(const char *yaml)
{
    JSON_OWN raw = NULL;
    json_t *out = NULL;
    struct det_err err;
    assert_int_equal(yamljson_parse(yaml, strlen(yaml), &raw, NULL), 0);
    if (expconf_partial(raw, &out, &err) < 0)
        fail_msg("%s", err.text);
    return out;
}

static void assert_merge(const char *high, const char *low, const char *path, const char *want)
{
    JSON_OWN h = partial(high);
    JSON_OWN l = partial(low);
    expconf_merge(h, l);
    JSON_OWN w = json_parse(want, strlen(want), NULL);
    det_cleanup(freep) char *got = json_text(json_path(h, path));
    if (!json_equal(json_path(h, path), w))
        fail_msg("%s: %s, not %s", path, got, want);
}

static void test_merge(void **state)
{
    assert_merge("debug: false", "debug: true", "debug", "false");
    assert_merge("debug: null", "debug: true", "debug", "true");
    assert_merge("resources: {weight: 2}", "resources: {weight: 3, priority: 5}", "resources",
                 "{\"priority\":5,\"weight\":2}");
    assert_merge("data: {a: {x: 1}}", "data: {a: {x: 2, y: 3}, b: 4}", "data",
                 "{\"a\":{\"x\":1,\"y\":3},\"b\":4}");
    assert_merge("labels: [a]", "labels: [b, a]", "labels", "[\"a\",\"b\"]");
    assert_merge("environment: {add_capabilities: [a]}", "environment: {add_capabilities: [b]}",
                 "environment.add_capabilities", "[\"a\"]");
    assert_merge("environment: {environment_variables: [A=2]}",
                 "environment: {environment_variables: {cpu: [A=1]}}",
                 "environment.environment_variables.cpu", "[\"A=1\",\"A=2\"]");
    assert_merge(
        "bind_mounts: [{host_path: /h, container_path: /c}]",
        "bind_mounts: [{host_path: /l, container_path: /c}, {host_path: /l, container_path: /d}]",
        "bind_mounts",
        "[{\"container_path\":\"/c\",\"host_path\":\"/h\"},{\"container_path\":\"/"
        "d\",\"host_path\":\"/l\"}]");
    assert_merge("checkpoint_storage: {type: directory, container_path: /c}",
                 "checkpoint_storage: {type: shared_fs, host_path: /h, save_trial_best: 7}",
                 "checkpoint_storage",
                 "{\"container_path\":\"/c\",\"save_trial_best\":7,\"type\":\"directory\"}");
    assert_merge("checkpoint_storage: {save_trial_best: 2}",
                 "checkpoint_storage: {type: shared_fs, host_path: /h, save_trial_best: 7}",
                 "checkpoint_storage",
                 "{\"host_path\":\"/h\",\"save_trial_best\":2,\"type\":\"shared_fs\"}");
    assert_merge("searcher: {name: single, max_length: {batches: 1}}",
                 "searcher: {name: random, metric: m, max_trials: 3, max_length: {epochs: 1}}",
                 "searcher",
                 "{\"max_length\":{\"batches\":1},\"metric\":\"m\",\"name\":\"single\"}");
    assert_merge("searcher: {name: random, max_length: {batches: 1}}",
                 "searcher: {name: random, max_trials: 3, max_length: {epochs: 1}}", "searcher",
                 "{\"max_length\":{\"batches\":1},\"max_trials\":3,\"name\":\"random\"}");
    assert_merge(
        "hyperparameters: {a: 1, g: {x: 1}}",
        "hyperparameters: {a: {type: int, minval: 1, maxval: 2}, g: {x: 2, y: 3}}",
        "hyperparameters",
        "{\"a\":{\"type\":\"const\",\"val\":1},\"g\":{\"x\":{\"type\":\"const\",\"val\":1},"
        "\"y\":{\"type\":\"const\",\"val\":3}}}");
}

static void test_lower(void **state)
{
    static const char text[] =
        "entrypoint: m:T\nsearcher: {name: single, metric: loss, max_length: 5}\n"
        "checkpoint_storage: {save_trial_latest: 4}\n";
    JSON_OWN lower = partial("checkpoint_storage: {type: shared_fs, host_path: /master}");
    struct expconf_defaults d = defaults;
    d.lower = lower;
    JSON_OWN config = NULL;
    assert_int_equal(expconf_parse(text, strlen(text), &d, &config, NULL, NULL), 0);
    assert_part(config, "checkpoint_storage.host_path", "\"/master\"");
    assert_part(config, "checkpoint_storage.save_trial_latest", "4");
    assert_part(config, "searcher.max_length", "5");
}

static void test_override(void **state)
{
    JSON_OWN c = json_object();
    struct det_err err;
    assert_int_equal(expconf_override(c, "a.b.c=1e-3", &err), 0);
    assert_int_equal(expconf_override(c, "a.b.d=[x, 2]", &err), 0);
    assert_int_equal(expconf_override(c, "a.e=k=v", &err), 0);
    assert_int_equal(expconf_override(c, "n=", &err), 0);
    det_cleanup(freep) char *text = json_text(c);
    assert_string_equal(text,
                        "{\"a\":{\"b\":{\"c\":0.001,\"d\":[\"x\",2]},\"e\":\"k=v\"},\"n\":null}");
    assert_int_equal(expconf_override(c, "a", &err), DET_EINVAL);
    assert_int_equal(expconf_override(c, "=1", &err), DET_EINVAL);
    assert_int_equal(expconf_override(c, "a..b=1", &err), DET_EINVAL);
    assert_int_equal(expconf_override(c, "a.=1", &err), DET_EINVAL);
    assert_int_equal(expconf_override(c, "a.e.f=1", &err), DET_EINVAL);
    assert_int_equal(expconf_override(c, "a.e=[", &err), DET_EINVAL);
}

/* The halving searchers and custom, as they are stored and seen. */
static void test_view_searchers(void **state)
{
    static const struct {
        const char *searcher;
        enum expconf_searcher kind;
    } cases[] = {
        {"{name: adaptive_asha, metric: m, max_length: {epochs: 7}, max_trials: 2}",
         EXPCONF_ADAPTIVE_ASHA},
        {"{name: async_halving, metric: m, max_length: {epochs: 7}, max_trials: 2, num_rungs: 3}",
         EXPCONF_ASYNC_HALVING},
        {"{name: custom, metric: m, unit: epochs, anything: 5}", EXPCONF_CUSTOM},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        det_cleanup(freep) char *yaml = det_asprintf(
            "{name: n, entrypoint: a:B, searcher: %s, checkpoint_storage: {type: shared_fs, "
            "host_path: /tmp}}",
            cases[i].searcher);
        JSON_OWN c = complete(yaml);
        struct expconf v;
        assert_int_equal(expconf_view(c, &v, NULL), 0);
        assert_int_equal(v.searcher, cases[i].kind);
        assert_int_equal(v.max_length.unit, LENGTH_EPOCHS);
        assert_int_equal(v.max_length.n, cases[i].kind == EXPCONF_CUSTOM ? 0 : 7);
        expconf_finish(&v);
    }
}

static void test_view(void **state)
{
    JSON_OWN c = complete(everything);
    struct expconf v;
    assert_int_equal(expconf_view(c, &v, NULL), 0);
    assert_int_equal(v.searcher, EXPCONF_GRID);
    assert_string_equal(v.metric, "acc");
    assert_false(v.smaller_is_better);
    assert_int_equal(v.max_length.unit, LENGTH_EPOCHS);
    assert_int_equal(v.max_length.n, 3);
    assert_int_equal(v.max_trials, 6);
    assert_int_equal(v.max_concurrent_trials, 16);
    assert_int_equal(v.slots_per_trial, 2);
    assert_int_equal(v.priority, 0);
    assert_int_equal(v.max_slots, -1);
    assert_true(v.weight == 1);
    assert_int_equal(v.store, EXPCONF_DIRECTORY);
    assert_string_equal(v.store_container_path, "/ck");
    assert_int_equal(v.save_trial_best, 0);
    assert_int_equal(v.experiment_seed, 1700000000);
    assert_int_equal(v.min_validation_period.n, 100);
    assert_int_equal(v.checkpoint_policy, EXPCONF_POLICY_BEST);
    expconf_finish(&v);
    JSON_OWN single = complete(smallest);
    assert_int_equal(expconf_view(single, &v, NULL), 0);
    assert_int_equal(v.max_trials, 1);
    assert_int_equal(v.max_concurrent_trials, 1);
    assert_null(v.description);
    expconf_finish(&v);
    struct det_err err;
    json_object_del(json_obj(single, "searcher"), "metric");
    assert_int_equal(expconf_view(single, &v, &err), DET_EINVAL);
    JSON_OWN empty = json_object();
    assert_int_equal(expconf_view(empty, &v, &err), DET_EINVAL);
}

static void test_not_a_map(void **state)
{
    static const char *const texts[] = {"", "5", "[]", "text", "a: [", "\xff"};
    struct det_err err;
    for (size_t i = 0; i < DET_ARRAY_LEN(texts); i++) {
        json_t *config = NULL;
        assert_true(expconf_parse(texts[i], strlen(texts[i]), &defaults, &config, NULL, &err) < 0);
    }
}

static char *idle_as(const char *entrypoint, const char *search, const char *more)
{
    char text[512];
    json_t *config = NULL;
    struct det_err err;
    struct mistakes m = MISTAKES_INIT;
    snprintf(text, sizeof text,
             "{entrypoint: %s, searcher: {name: %s, metric: l, max_length: {batches: 5}}, "
             "checkpoint_storage: {type: shared_fs, host_path: /c}%s}",
             entrypoint, search, more);
    struct expconf_defaults none = {0};
    if (expconf_parse(text, strlen(text), &none, &config, NULL, &err) < 0)
        fail_msg("%s", err.text);
    expconf_idle(config, &m);
    json_decref(config);
    return buf_steal(&m.text);
}

static char *idle_of(const char *entrypoint, const char *more)
{
    return idle_as(entrypoint, "single", more);
}

static void assert_idle(const char *more, const char *first, size_t lines)
{
    det_cleanup(freep) char *text = idle_of("'m:T'", more);
    size_t n = 0;
    for (const char *p = text; (p = strchr(p, '\n')); p++)
        n++;
    assert_int_equal(n, lines);
    if (strncmp(text, first, strlen(first)) != 0)
        fail_msg("%s", text);
}

/* A complete configuration is silent; what nothing acts on is named where it was written. */
static void test_idle(void **state)
{
    assert_idle("", "", 0);
    assert_idle(", debug: true, environment: {environment_variables: [A=b]}", "", 0);
    assert_idle(", bind_mounts: [{host_path: /d, container_path: /d}]", "", 0);
    assert_idle(", bind_mounts: [{host_path: /d, container_path: /d}, "
                "{host_path: /e, container_path: data, read_only: true}]",
                "bind_mounts[1].container_path: has no effect: there are no containers", 2);
    assert_idle(", resources: {devices: ['/dev/a:/dev/a', '/dev/a:/dev/b']}",
                "resources.devices[1].container_path: has no effect", 1);
    assert_idle(", environment: {image: mine}", "environment.image: has no effect", 1);
    assert_idle(", optimizations: {mixed_precision: O0}, slurm: {}", "", 0);
    assert_idle(", optimizations: {mixed_precision: O1}, slurm: {gpu_type: a}",
                "optimizations.mixed_precision: has no effect", 2);
}

/* Who never says that it gets on is not watched, whatever is written. */
static void test_stall_of_a_command(void **state)
{
    assert_idle(", stall_timeout: 60", "", 0);
    static const char *const commands[] = {"python3 train.py", "[python3, train.py]"};
    for (size_t i = 0; i < DET_ARRAY_LEN(commands); i++) {
        det_cleanup(freep) char *given = idle_of(commands[i], ", stall_timeout: 60");
        det_cleanup(freep) char *never = idle_of(commands[i], ", stall_timeout: 0");
        assert_non_null(strstr(given, "stall_timeout: of a command it counts from its first "));
        assert_string_equal(never, "");
    }
}

/* What others take for an axis of a grid. */
static void test_plain_list_in_a_grid(void **state)
{
    static const char *const silent[] = {
        ", hyperparameters: {lr: {type: categorical, vals: [0.1, 0.2]}}",
        ", hyperparameters: {lr: 0.1, layers: [64], shapes: [[1, 2], [3]], e: []}"};
    for (size_t i = 0; i < DET_ARRAY_LEN(silent); i++) {
        det_cleanup(freep) char *text = idle_as("'m:T'", "grid", silent[i]);
        assert_string_equal(text, "");
    }
    const char *lists = ", hyperparameters: {lr: [0.1, 0.25], deep: {kind: [adam, sgd]}}";
    det_cleanup(freep) char *single = idle_as("'m:T'", "single", lists);
    det_cleanup(freep) char *grid = idle_as("'m:T'", "grid", lists);
    assert_string_equal(single, "");
    assert_non_null(strstr(grid, "hyperparameters.lr: one constant, a list: "));
    assert_non_null(strstr(grid, "write {type: categorical, vals: [0.1,0.25]}\n"));
    assert_non_null(strstr(grid, "hyperparameters.deep.kind: one constant, a list: "));
    assert_non_null(strstr(grid, "vals: [\"adam\",\"sgd\"]}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stored_form),
        cmocka_unit_test(test_idempotent),
        cmocka_unit_test(test_normalised),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_all_mistakes_at_once),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_variables_that_exec_takes),
        cmocka_unit_test(test_grid_needs_counts),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_lower),
        cmocka_unit_test(test_override),
        cmocka_unit_test(test_view),
        cmocka_unit_test(test_view_searchers),
        cmocka_unit_test(test_not_a_map),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_stall_of_a_command),
        cmocka_unit_test(test_plain_list_in_a_grid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
