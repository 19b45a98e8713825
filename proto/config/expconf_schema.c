#include "expconf_schema.h"

#include "expconf_hide.h"
#include <string.h>
#include <strings.h>
#include "pythonlimits.h"
#include "uuid.h"

/* ---- further conditions ---- */

static bool not_empty(const json_t *v)
{
    return *json_string_value(v) != '\0';
}

/* A copy of somebody else's configuration has what stands for his secrets. */
static bool is_shown(const json_t *v)
{
    return strcmp(json_string_value(v), EXPCONF_HIDDEN) != 0;
}

/* What may become a word of a line: pip begins a new one at all that Unicode takes for its end. */
static bool plain_line(const json_t *v)
{
    const char *s = json_string_value(v);
    for (const unsigned char *c = (const unsigned char *)s; *c; c++)
        if ((*c < ' ' && *c != '\t') || *c == 0x7f)
            return false;
    return *s && *s != '-' && !strstr(s, "\xc2\x85") && !strstr(s, "\xe2\x80\xa8") &&
           !strstr(s, "\xe2\x80\xa9");
}

static bool index_url(const json_t *v)
{
    return plain_line(v) && json_string_length(v) <= PYTHON_URL_MAX;
}

static bool index_urls(const json_t *v)
{
    size_t i;
    json_t *item;
    json_array_foreach(v, i, item) if (!index_url(item)) return false;
    return json_array_size(v) <= PYTHON_URLS_MAX;
}

static bool is_interpreter(const json_t *v)
{
    return plain_line(v) && json_string_length(v) <= PYTHON_PATH_MAX;
}

static bool ends_as_archive(const char *s, size_t n)
{
    static const char *const ends[] = {".whl",     ".zip",    ".tar",    ".tgz",
                                       ".tbz",     ".txz",    ".tlz",    ".tar.gz",
                                       ".tar.bz2", ".tar.xz", ".tar.lz", ".tar.lzma"};
    for (size_t i = 0; i < DET_ARRAY_LEN(ends); i++) {
        size_t m = strlen(ends[i]);
        if (n > m && strncasecmp(s + n - m, ends[i], m) == 0)
            return true;
    }
    return false;
}

/* s, of n bytes: a file's path or URL, as pip or uv take one in the place of a name. */
static bool is_file(const char *s, size_t n)
{
    const char *scheme = memmem(s, n, "://", 3), *plus = memchr(s, '+', n);
    if (*s == '.' || *s == '/' || strncasecmp(s, "file:", 5) == 0 ||
        (plus && strncasecmp(plus + 1, "file:", 5) == 0))
        return true;
    return !scheme && (memchr(s, '/', n) || ends_as_archive(s, n));
}

/* NAME [EXTRAS] [CONDITIONS], NAME @ URL or a URL. */
static bool names_file(const char *s)
{
    size_t n = strcspn(s, " \t;@");
    if (is_file(s, n))
        return true;
    const char *at = s + strcspn(s, "@;#<>=!~");
    if (*at != '@' || memmem(s, n, "://", 3))
        return false;
    at += 1 + strspn(at + 1, " \t");
    return is_file(at, strcspn(at, " \t;"));
}

/* Options have keys of their own, and what a file holds is not part of the list. */
static bool are_requirements(const json_t *v)
{
    size_t i;
    json_t *item;
    json_array_foreach(v, i, item)
    {
        const char *s = json_string_value(item);
        s += strspn(s, " \t");
        if (!plain_line(item) || *s == '-' || names_file(s))
            return false;
    }
    return json_array_size(v) <= PYTHON_LINES_MAX;
}

/* Its short forms are what these keys are; a map's are looked at as keys. */
static bool is_python(const json_t *v)
{
    return json_is_array(v) ? are_requirements(v) : !json_is_string(v) || is_interpreter(v);
}

/* With a longer variable, or more of them, exec starts nothing (E2BIG). */
static bool are_short(const json_t *list)
{
    size_t i, all = 0;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        all += json_string_length(item);
        if (json_string_length(item) >= (128 << 10))
            return false;
    }
    return all <= (1 << 20);
}

static bool are_variables(const json_t *v)
{
    const char *kind;
    json_t *list;
    json_object_foreach((json_t *)v, kind, list)
    {
        if (!are_short(list))
            return false;
    }
    return are_short(v);
}

static bool is_absolute(const json_t *v)
{
    return *json_string_value(v) == '/';
}

static bool is_uuid(const json_t *v)
{
    return uuid_is_valid(json_string_value(v));
}

static bool is_inside(const json_t *v)
{
    const char *s = json_string_value(v);
    return *s && strcmp(s, ".") != 0;
}

static bool no_parents(const json_t *v)
{
    for (const char *s = json_string_value(v); *s;) {
        size_t n = strcspn(s, "/");
        if (n == 2 && s[0] == '.' && s[1] == '.')
            return false;
        s += n + (s[n] == '/');
    }
    return true;
}

static bool device_mode(const json_t *v)
{
    const char *s = json_string_value(v);
    return *s && strspn(s, "rwm") == strlen(s);
}

static bool not_many(const json_t *v)
{
    return json_array_size(v) <= 32; /* every line of a log is held against each */
}

static bool above_one(const json_t *v)
{
    return json_number_value(v) > 1;
}

static bool above_zero(const json_t *v)
{
    return json_number_value(v) > 0;
}

/* ---- the table ---- */

#define OBJ(p, dflt) .path = p, .type = EXPCONF_OBJECT, .fallback = dflt
#define STR(p, dflt) .path = p, .type = EXPCONF_STR, .fallback = dflt
#define SECRET                                                                                     \
    .ok = is_shown, .rule = "text, what the registry takes: it is hidden in lists and from all "   \
                            "but the owner"
#define STRS(p, dflt)        .path = p, .type = EXPCONF_STRS, .fallback = dflt, .example = "[a, b]"
#define TEXTS(p)             .path = p, .type = EXPCONF_STRS /* with an example of its own */
#define BOOL(p, dflt)        .path = p, .type = EXPCONF_BOOL, .fallback = dflt
#define INT(p, dflt, lo, hi) .path = p, .type = EXPCONF_INT, .fallback = dflt, .min = lo, .max = hi
#define ANY(p)               .path = p, .type = EXPCONF_ANY
#define ENUM(p, dflt, words) .path = p, .type = EXPCONF_ENUM, .fallback = dflt, .choices = words
#define IDLE(why)            .idle = why
#define NEEDED               .required = true
#define EXAMPLE(text)        .example = text
#define ABSOLUTE             .ok = is_absolute, .rule = "an absolute path", .example = "/data"
#define NOT_EMPTY            .ok = not_empty, .rule = "text that is not empty"
#define BUILT_IN             "single random grid adaptive_asha async_halving"
#define MANY                 "random adaptive_asha async_halving"
#define HALVING              "adaptive_asha async_halving"
#define NO_CONTAINER         "there are no containers, tasks have "
#define IMAGES               "determinedai/environments:"

const struct expconf_key expconf_keys[] = {
    {STR("name", NULL), NEEDED, NOT_EMPTY, EXAMPLE("my experiment")},
    {STR("description", "null")},
    {STRS("labels", "[]")},
    {STR("workspace", "\"\"")},
    {STR("project", "\"\"")},
    {.path = "entrypoint",
     .type = EXPCONF_ENTRYPOINT,
     .fallback = "null",
     EXAMPLE("model_def:MyTrial")},
    {.path = "hyperparameters",
     .type = EXPCONF_HPARAMS,
     .fallback = "{}",
     EXAMPLE("{global_batch_size: 64}")},
    {OBJ("searcher", NULL), NEEDED,
     EXAMPLE("{name: single, metric: validation_loss, max_length: {batches: 1000}}")},
    {ENUM("searcher.name", NULL,
          "single random grid adaptive_asha async_halving custom adaptive adaptive_simple "
          "sync_halving"),
     NEEDED, EXAMPLE("single")},
    {STR("searcher.metric", NULL), NEEDED, NOT_EMPTY, EXAMPLE("validation_loss")},
    {BOOL("searcher.smaller_is_better", "true")},
    {INT("searcher.source_trial_id", "null", 1, INT32_MAX)},
    {STR("searcher.source_checkpoint_uuid", "null"), .ok = is_uuid,
     .rule = "the uuid of a checkpoint"},
    {.path = "searcher.max_length",
     .type = EXPCONF_MAX_LENGTH,
     NEEDED,
     .kinds = BUILT_IN,
     EXAMPLE("{batches: 1000}")},
    {INT("searcher.max_trials", NULL, 1, INT32_MAX), NEEDED, .kinds = MANY, EXAMPLE("16")},
    {INT("searcher.max_concurrent_trials", "16", 0, INT32_MAX), .kinds = MANY " grid"},
    {ENUM("searcher.mode", "\"standard\"", "aggressive standard conservative"),
     .kinds = "adaptive_asha"},
    {.path = "searcher.divisor",
     .type = EXPCONF_NUM,
     .fallback = "4",
     .kinds = HALVING,
     .ok = above_one,
     .rule = "a number above 1"},
    {INT("searcher.max_rungs", "5", 1, INT32_MAX), .kinds = "adaptive_asha"},
    {.path = "searcher.bracket_rungs",
     .type = EXPCONF_INTS,
     .fallback = "[]",
     .kinds = "adaptive_asha",
     EXAMPLE("[2, 3]")},
    {BOOL("searcher.stop_once", "false"), .kinds = HALVING},
    {INT("searcher.num_rungs", NULL, 1, INT32_MAX), NEEDED, .kinds = "async_halving", EXAMPLE("4")},
    {ENUM("searcher.unit", "null", "batches records epochs"), .kinds = "custom"},

    {OBJ("resources", "{}")},
    {INT("resources.slots_per_trial", "1", 0, INT32_MAX)},
    {STR("resources.resource_pool", "\"\"")},
    {INT("resources.max_slots", "null", 0, INT32_MAX)},
    {.path = "resources.weight",
     .type = EXPCONF_NUM,
     .fallback = "1",
     .ok = above_zero,
     .rule = "a number above 0"},
    {INT("resources.priority", "null", 1, 99)},
    {.path = "resources.shm_size",
     IDLE(NO_CONTAINER "the host's shared memory"),
     .type = EXPCONF_SIZE,
     .fallback = "null",
     EXAMPLE("4g")},
    {.path = "resources.devices",
     .type = EXPCONF_DEVICES,
     .fallback = "[]",
     EXAMPLE("[\"/dev/fuse:/dev/fuse:rwm\"]")},
    {STR("resources.devices[].host_path", NULL), NEEDED, ABSOLUTE},
    {STR("resources.devices[].container_path", NULL), NEEDED, ABSOLUTE,
     IDLE(NO_CONTAINER "the host's devices, where host_path says")},
    {STR("resources.devices[].mode", "\"mrw\""), .ok = device_mode,
     .rule = "some of the letters r, w and m"},
    {BOOL("resources.native_parallel", "false"), IDLE("write resources.slots_per_trial")},
    {STR("resources.agent_label", "null"), IDLE("write resources.resource_pool")},
    {INT("resources.slots", "null", 0, INT32_MAX), IDLE("write resources.slots_per_trial")},

    {OBJ("checkpoint_storage", NULL), NEEDED,
     EXAMPLE("{type: shared_fs, host_path: /checkpoints}")},
    {ENUM("checkpoint_storage.type", NULL, "shared_fs directory s3 gcs azure"), NEEDED,
     EXAMPLE("shared_fs")},
    {INT("checkpoint_storage.save_experiment_best", "0", 0, INT32_MAX)},
    {INT("checkpoint_storage.save_trial_best", "1", 0, INT32_MAX)},
    {INT("checkpoint_storage.save_trial_latest", "1", 0, INT32_MAX)},
    {STR("checkpoint_storage.host_path", NULL), NEEDED, .kinds = "shared_fs", ABSOLUTE},
    {STR("checkpoint_storage.storage_path", "null"), .kinds = "shared_fs", .ok = no_parents,
     .rule = "a path without \"..\""},
    {STR("checkpoint_storage.propagation", "\"rprivate\""), .kinds = "shared_fs", NOT_EMPTY,
     IDLE(NO_CONTAINER "the host's mounts")},
    {STR("checkpoint_storage.container_path", "null"), .kinds = "shared_fs directory"},
    {STR("checkpoint_storage.checkpoint_path", "null"), .kinds = "shared_fs",
     IDLE("write storage_path")},
    {STR("checkpoint_storage.tensorboard_path", "null"), .kinds = "shared_fs",
     IDLE("write storage_path")},
    {STR("checkpoint_storage.bucket", NULL), NEEDED, .kinds = "s3 gcs", NOT_EMPTY},
    {STR("checkpoint_storage.access_key", "null"), .kinds = "s3"},
    {STR("checkpoint_storage.secret_key", "null"), .kinds = "s3"},
    {STR("checkpoint_storage.endpoint_url", "null"), .kinds = "s3"},
    {STR("checkpoint_storage.prefix", "null"), .kinds = "s3 gcs", .ok = no_parents,
     .rule = "a prefix without \"..\""},
    {STR("checkpoint_storage.container", NULL), NEEDED, .kinds = "azure", NOT_EMPTY},
    {STR("checkpoint_storage.connection_string", "null"), .kinds = "azure"},
    {STR("checkpoint_storage.account_url", "null"), .kinds = "azure"},
    {STR("checkpoint_storage.credential", "null"), .kinds = "azure"},

    {ENUM("checkpoint_policy", "\"best\"", "best all none")},
    {.path = "min_checkpoint_period",
     .type = EXPCONF_LENGTH,
     .fallback = "{\"batches\":0}",
     EXAMPLE("{batches: 100}")},
    {.path = "min_validation_period",
     .type = EXPCONF_LENGTH,
     .fallback = "{\"batches\":0}",
     EXAMPLE("{batches: 100}")},
    {BOOL("perform_initial_validation", "false")},
    {INT("max_restarts", "5", 0, INT32_MAX)},
    {INT("stall_timeout", NULL, 0, INT32_MAX)},
    {BOOL("stop_on_nan", NULL)},
    {BOOL("hold_failing_search", NULL)},
    {INT("scheduling_unit", "100", 1, INT32_MAX)},
    {INT("records_per_epoch", "0", 0, INT32_MAX),
     IDLE("an epoch is the length of the training data")},
    {OBJ("reproducibility", "{}")},
    {INT("reproducibility.experiment_seed", NULL, 0, UINT32_MAX)},

    {OBJ("environment", "{}")},
    {.path = "environment.image",
     IDLE(NO_CONTAINER "the host's programs and Python packages"),
     .type = EXPCONF_IMAGE,
     .fallback = "{\"cpu\":\"" IMAGES "py-3.9-pytorch-1.12-tf-2.11-cpu-622d512\","
                 "\"cuda\":\"" IMAGES "cuda-11.3-pytorch-1.12-tf-2.11-gpu-622d512\","
                 "\"rocm\":\"" IMAGES "rocm-5.0-pytorch-1.10-tf-2.7-rocm-622d512\"}",
     EXAMPLE("{cpu: image-1, cuda: image-2}")},
    {.path = "environment.environment_variables",
     .type = EXPCONF_ENV_VARS,
     .ok = are_variables,
     .rule = "a list of KEY=value, or a map of such lists by cpu, cuda, rocm, of less than 128 KiB "
             "each and at most 1 MiB together",
     .fallback = "{\"cpu\":[],\"cuda\":[],\"rocm\":[]}",
     EXAMPLE("[\"KEY=value\"]")},
    {.path = "environment.python",
     .type = EXPCONF_PYTHON,
     .ok = is_python,
     .rule = "an interpreter, a virtual environment's folder, a list of requirements (without "
             "options other than --hash, and of no files), or a map",
     EXAMPLE("/opt/venv")},
    {TEXTS("environment.python.requirements"), .ok = are_requirements,
     .rule = "a list of requirements, without options other than --hash, and of no files",
     .example = "[\"numpy==1.26.4\", \"timm>=1.0\"]"},
    {TEXTS("environment.python.constraints"), .ok = are_requirements,
     .rule = "a list of constraints, as requirements are", .example = "[\"numpy<2\"]"},
    {STR("environment.python.index_url", NULL), .ok = index_url, .rule = "an index's URL",
     EXAMPLE("https://pypi.org/simple")},
    {TEXTS("environment.python.extra_index_urls"), .ok = index_urls,
     .rule = "a list of at most 100 URLs", .example = "[\"https://pypi.org/simple\"]"},
    {BOOL("environment.python.system_site_packages", NULL)},
    {STR("environment.python.interpreter", NULL), .ok = is_interpreter,
     .rule = "an interpreter or a virtual environment's folder", EXAMPLE("python3.11")},
    {.path = "environment.proxy_ports",
     IDLE("nothing is passed on to ports of tasks"),
     .type = EXPCONF_OBJECTS,
     .fallback = "[]",
     EXAMPLE("[{proxy_port: 6006}]")},
    {INT("environment.proxy_ports[].proxy_port", NULL, 1, 65535), NEEDED},
    {BOOL("environment.proxy_ports[].proxy_tcp", "false")},
    {BOOL("environment.proxy_ports[].unauthenticated", "false")},
    {BOOL("environment.proxy_ports[].default_service_id", "false")},
    {.path = "environment.ports",
     IDLE(NO_CONTAINER "the host's ports"),
     .type = EXPCONF_PORTS,
     .fallback = "{}",
     EXAMPLE("{web: 8080}")},
    {BOOL("environment.force_pull_image", "false"), IDLE(NO_CONTAINER "no image")},
    {OBJ("environment.registry_auth", "null"), IDLE(NO_CONTAINER "no image")},
    {STR("environment.registry_auth.username", NULL)},
    {STR("environment.registry_auth.password", NULL), SECRET},
    {STR("environment.registry_auth.auth", NULL), SECRET},
    {STR("environment.registry_auth.email", NULL)},
    {STR("environment.registry_auth.serveraddress", NULL)},
    {STR("environment.registry_auth.identitytoken", NULL), SECRET},
    {STR("environment.registry_auth.registrytoken", NULL), SECRET},
    {STRS("environment.add_capabilities", "[]"), IDLE("tasks have the rights of their account")},
    {STRS("environment.drop_capabilities", "[]"), IDLE("tasks have the rights of their account")},
    {.path = "environment.pod_spec",
     IDLE("there is no Kubernetes"),
     .type = EXPCONF_FREE,
     .fallback = "null"},

    {.path = "bind_mounts",
     .type = EXPCONF_OBJECTS,
     .fallback = "[]",
     EXAMPLE("[{host_path: /data, container_path: /data}]")},
    {STR("bind_mounts[].host_path", NULL), NEEDED, ABSOLUTE},
    {STR("bind_mounts[].container_path", NULL), NEEDED, .ok = is_inside,
     .rule = "a path other than \".\"", EXAMPLE("/data"),
     IDLE(NO_CONTAINER
          "the host's files, where host_path says: write that where the trial looks for them")},
    {BOOL("bind_mounts[].read_only", "false"), IDLE("tasks have the rights of their account")},
    {STR("bind_mounts[].propagation", "\"rprivate\""), NOT_EMPTY,
     IDLE(NO_CONTAINER "the host's mounts")},

    {.path = "data", .type = EXPCONF_FREE, .fallback = "{}", EXAMPLE("{path: /data}")},
    {BOOL("debug", "false")},
    {OBJ("retention_policy", "null")},
    {INT("retention_policy.log_retention_days", "null", -1, 32767)},
    {.path = "log_policies",
     .type = EXPCONF_OBJECTS,
     .fallback = "[]",
     .ok = not_many,
     .rule = "a list of at most 32 maps",
     EXAMPLE("[{pattern: \".*CUDA out of memory.*\", action: {type: cancel_retries}}]")},
    {.path = "log_policies[].pattern", .type = EXPCONF_PATTERN, NEEDED, NOT_EMPTY},
    {OBJ("log_policies[].action", NULL), NEEDED, EXAMPLE("{type: cancel_retries}")},
    {ENUM("log_policies[].action.type", NULL, "cancel_retries exclude_node"), NEEDED},

    {OBJ("profiling", "{}")},
    {BOOL("profiling.enabled", "false")},
    {INT("profiling.begin_on_batch", "0", 0, INT32_MAX)},
    {INT("profiling.end_after_batch", "null", 0, INT32_MAX)},
    {BOOL("profiling.sync_timings", "true")},

    {OBJ("optimizations", "{}")},
    {INT("optimizations.aggregation_frequency", "1", 1, INT32_MAX)},
    {BOOL("optimizations.average_aggregated_gradients", "true")},
    {BOOL("optimizations.average_training_metrics", "true"),
     IDLE("metrics are always averaged over the ranks")},
    {BOOL("optimizations.gradient_compression", "false"),
     IDLE("gradients are exchanged as they are")},
    {STR("optimizations.grad_updates_size_file", "null"),
     IDLE("sizes of gradients are not written")},
    {ENUM("optimizations.mixed_precision", "\"O0\"", "O0 O1 O2 O3"),
     IDLE("the trial's own code chooses its precision")},
    {INT("optimizations.tensor_fusion_threshold", "64", 0, INT32_MAX),
     IDLE("the exchange of gradients has nothing to set")},
    {INT("optimizations.tensor_fusion_cycle_time", "1", 0, INT32_MAX),
     IDLE("the exchange of gradients has nothing to set")},
    {BOOL("optimizations.auto_tune_tensor_fusion", "false"),
     IDLE("the exchange of gradients has nothing to set")},

    {OBJ("slurm", "{}"), IDLE("there is no Slurm")},
    {INT("slurm.slots_per_node", NULL, 1, INT32_MAX)},
    {STR("slurm.gpu_type", NULL)},
    {STRS("slurm.sbatch_args", NULL)},
    {OBJ("pbs", "{}"), IDLE("there is no PBS")},
    {INT("pbs.slots_per_node", NULL, 1, INT32_MAX)},
    {STRS("pbs.pbsbatch_args", NULL)},

    {ANY("data_layer")},
    {.path = "internal", .type = EXPCONF_NULL},
    {ANY("security")},
    {ANY("tensorboard_storage")},
};
const size_t expconf_keys_n = DET_ARRAY_LEN(expconf_keys);

/* ---- looking things up ---- */

const char *expconf_key_child(const struct expconf_key *key, const char *prefix)
{
    const char *name = key->path;
    if (*prefix && *prefix != *name)
        return NULL; /* most: all keys are asked for each object */
    size_t n = strlen(prefix);
    if (n) {
        if (strncmp(name, prefix, n) != 0 || name[n] != '.')
            return NULL;
        name += n + 1;
    }
    return strchr(name, '.') ? NULL : name;
}

const struct expconf_key *expconf_key_find(const char *prefix, const char *name)
{
    for (size_t i = 0; i < expconf_keys_n; i++) {
        const char *child = expconf_key_child(&expconf_keys[i], prefix);
        if (child && strcmp(child, name) == 0)
            return &expconf_keys[i];
    }
    return NULL;
}

const char *expconf_kind_key(const char *prefix)
{
    return strcmp(prefix, "searcher") == 0             ? "name"
           : strcmp(prefix, "checkpoint_storage") == 0 ? "type"
                                                       : NULL;
}

bool expconf_word_in(const char *list, const char *word)
{
    size_t want = strlen(word);
    for (const char *s = list; *s;) {
        size_t n = strcspn(s, " ");
        if (n == want && memcmp(s, word, n) == 0)
            return true;
        s += n + (s[n] == ' ');
    }
    return false;
}

bool expconf_key_takes(const struct expconf_key *key, const char *kind)
{
    return !key->kinds || !kind || expconf_word_in(key->kinds, kind);
}

/* ---- the walk ---- */

static void walk_object(struct expconf_walk *w, const char *prefix, json_t *obj);

static void walk_items(struct expconf_walk *w, const struct expconf_key *key, json_t *list)
{
    det_cleanup(freep) char *prefix = det_asprintf("%s[]", key->path);
    size_t i, from = w->where.len;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        buf_addf(&w->where, "[%zu]", i);
        walk_object(w, prefix, item);
        w->where.len = from;
        w->where.p[from] = '\0';
    }
}

static void walk_key(struct expconf_walk *w, const struct expconf_key *key, const char *name,
                     json_t *obj)
{
    size_t from = w->where.len;
    buf_addf(&w->where, "%s%s", from ? "." : "", name);
    w->on_key(w, key, obj, name, json_object_get(obj, name));
    json_t *now = json_object_get(obj, name);
    if (key->type == EXPCONF_OBJECT || key->type == EXPCONF_PYTHON)
        walk_object(w, key->path, now);
    if (key->type == EXPCONF_OBJECTS || key->type == EXPCONF_DEVICES)
        walk_items(w, key, now);
    w->where.len = from;
    w->where.p[from] = '\0';
}

static void walk_object(struct expconf_walk *w, const char *prefix, json_t *obj)
{
    if (!json_is_object(obj))
        return;
    if (w->on_object)
        w->on_object(w, prefix, obj);
    for (size_t i = 0; i < expconf_keys_n; i++) {
        const char *name = expconf_key_child(&expconf_keys[i], prefix);
        if (name)
            walk_key(w, &expconf_keys[i], name, obj);
    }
}

void expconf_walk(struct expconf_walk *w, json_t *config)
{
    walk_object(w, "", config);
    buf_finish(&w->where);
}
