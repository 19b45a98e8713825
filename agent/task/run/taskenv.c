#include "taskenv.h"

#include "find.h"
#include "fsx.h"
#include "omp_wait.h"
#include "progress.h"
#include "spool.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of Linux, with its end: what is longer is E2BIG to exec. */
#define VARIABLE_MAX ((size_t)128 << 10)

extern char **environ;

/* What a task may see of the agent's environment; a name that ends in '_' stands for all that begin
 * so. Everything else (tokens, proxies of the agent's owner) stays here. */
static const char *const passed_on[] = {
    "PATH",
    "LANG",
    "LC_",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "DET_CC",
    "DET_CACHE_DIR",
    "DET_INCLUDE_DIR",
    "DET_BACKEND_DIR",
    "DET_PYTHON_EXECUTABLE",
    "DET_THREADS_PER_SLOT",
    "ASAN_OPTIONS",
    "UBSAN_OPTIONS",
    "LSAN_OPTIONS",
    "OMP_",
    "GOMP_",
    "MKL_",
    "OPENBLAS_",
    "DNNL_",
    "ONEDNN_",
    "NCCL_",
    "GLOO_",
    "CUDA_HOME",
    "CUDA_PATH",
    "XLA_",
#ifdef DET_FAILPOINTS_BUILT
    "DET_FAILPOINTS",
#endif
};

static bool is_passed_on(const char *name, size_t len)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(passed_on); i++) {
        size_t n = strlen(passed_on[i]);
        bool prefix = passed_on[i][n - 1] == '_';
        if (strncmp(name, passed_on[i], n) == 0 && (prefix ? len > n : len == n))
            return true;
    }
    return false;
}

static void set_variable(json_t *env, const char *name, const char *value)
{
    json_set(env, name, json_string(value ? value : ""));
}

static void __attribute__((format(printf, 3, 4)))
format_variable(json_t *env, const char *name, const char *fmt, ...)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vaddf(&b, fmt, ap);
    va_end(ap);
    set_variable(env, name, buf_str(&b));
}

static void set_missing(json_t *env, const char *name, const char *value)
{
    if (!json_object_get(env, name))
        set_variable(env, name, value);
}

static void add_own(json_t *env)
{
    for (char **e = environ; *e; e++) {
        const char *eq = strchr(*e, '=');
        if (!eq || !is_passed_on(*e, (size_t)(eq - *e)))
            continue;
        det_cleanup(freep) char *name = det_strndup(*e, (size_t)(eq - *e));
        json_set(env, name, json_lossy(eq + 1, strlen(eq + 1)));
    }
    set_missing(env, "PATH", "/usr/local/bin:/usr/bin:/bin");
}

/* The agent's own is not there for a task that has its /tmp over it. */
static void leave_out_covered_tmp(json_t *env, const struct taskspec *s)
{
    const char *dir = json_str(env, "TMPDIR", "");
    if (taskspec_is_kept_apart(s) &&
        (strncmp(dir, "/tmp/", 5) == 0 || strncmp(dir, "/var/tmp/", 9) == 0))
        json_object_del(env, "TMPDIR");
}

/* The first of the masters: what programs that know of one only are told. Caller frees. */
static char *first_master(const struct taskspec *s)
{
    return det_strndup(s->master, strcspn(s->master, ","));
}

/* DET_MASTER and its parts; DET_MASTERS when there are several. */
static void add_master(json_t *env, const struct taskspec *s)
{
    det_cleanup(freep) char *url = first_master(s);
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    const char *colon = strrchr(host, ':');
    det_cleanup(freep) char *name =
        det_strndup(host, colon ? (size_t)(colon - host) : strlen(host));
    bool tls = strncmp(url, "https", 5) == 0;
    set_variable(env, "DET_MASTER", url);
    if (strchr(s->master, ','))
        set_variable(env, "DET_MASTERS", s->master);
    set_variable(env, "DET_MASTER_ADDR", name);
    set_variable(env, "DET_MASTER_HOST", name);
    set_variable(env, "DET_MASTER_PORT", colon ? colon + 1 : tls ? "443" : "80");
    set_variable(env, "DET_USE_TLS", tls ? "true" : "false");
    if (s->ca_file)
        set_variable(env, "DET_MASTER_CERT_FILE", s->ca_file);
    if (s->cert_name)
        set_variable(env, "DET_MASTER_CERT_NAME", s->cert_name);
}

/* A task sees its own GPUs and no other. */
static void add_devices(json_t *env, const struct taskspec *s)
{
    det_cleanup(buf_finish) struct buf ids = BUF_INIT, uuids = BUF_INIT;
    for (size_t i = 0; i < s->task.slots_n; i++) {
        const json_t *slot = taskspec_slot(s, i);
        buf_addf(&ids, "%s%d", i ? "," : "", s->task.slots[i]);
        if (slot && strcmp(json_str(slot, "type", "cpu"), "cuda") == 0)
            buf_addf(&uuids, "%s%s", uuids.len ? "," : "", json_str(slot, "uuid", ""));
    }
    format_variable(env, "DET_SLOT_IDS", "[%s]", buf_str(&ids));
    set_variable(env, "CUDA_VISIBLE_DEVICES", buf_str(&uuids));
    set_variable(env, "NVIDIA_VISIBLE_DEVICES", uuids.len ? buf_str(&uuids) : "void");
}

char *taskenv_package_dir(void)
{
    det_cleanup(freep) char *init = find_beside("../lib/det/python/determined/__init__.py", R_OK);
    if (!init)
        return NULL;
    init[strlen(init) - strlen("/determined/__init__.py")] = '\0';
    return realpath(init, NULL);
}

/* Last, so that a package of the user's own comes first. */
static void add_package(json_t *env)
{
    det_cleanup(freep) char *dir = taskenv_package_dir();
    const char *own = json_str(env, "PYTHONPATH", "");
    if (dir)
        format_variable(env, "PYTHONPATH", "%s%s%s", own, *own ? ":" : "", dir);
}

static void add_host(json_t *env, const struct taskspec *s, const char *chief_addr)
{
    set_variable(env, "DET_ALLOCATION_ID", s->alloc);
    set_variable(env, "DET_CONTAINER_ID", s->container);
    set_variable(env, "DET_RESOURCES_ID", s->container);
    set_variable(env, "DET_AGENT_ID", s->agent_id);
    set_variable(env, "DET_SESSION_TOKEN", s->task.token);
    set_variable(env, "DET_TASK_TYPE", s->task.kind);
    set_variable(env, "DET_TASK_ID", s->task.task_id);
    format_variable(env, "DET_WORKDIR", "%s/work", s->dir);
    format_variable(env, "DET_MODEL_DIR", "%s/model", s->dir);
    format_variable(env, "DET_INFO_DIR", "%s/info", s->dir);
    format_variable(env, "DET_RUN_DIR", "%s/run", s->dir);
    format_variable(env, "PWD", "%s/work", s->dir);
    set_variable(env, "DET_CHIEF_IP", chief_addr);
    set_variable(env, "USER", s->user_name);
    set_variable(env, "LOGNAME", s->user_name);
    set_missing(env, "HOME", s->home);
    set_missing(env, "PYTHONUNBUFFERED", "1");
    add_package(env);
    char threads[16];
    snprintf(threads, sizeof threads, "%d", s->threads_per_slot);
    set_missing(env, "DET_THREADS_PER_SLOT", threads);
    set_missing(env, "OMP_NUM_THREADS", json_str(env, "DET_THREADS_PER_SLOT", threads));
    if (!json_object_get(env, OMP_WAIT_VAR))
        set_missing(env, OMP_SPIN_VAR, OMP_SPIN_VALUE);
    set_missing(env, OMP_WAIT_VAR, OMP_WAIT_VALUE);
}

/* The user's own list of devices, cgroup and the like must not undo what isolates tasks, so what
 * the host says comes last. */
json_t *taskenv_common(const struct taskspec *s, const char *chief_addr)
{
    json_t *env = json_object();
    add_own(env);
    leave_out_covered_tmp(env, s);
    if (s->cache)
        set_variable(env, "DET_CACHE_DIR", s->cache);
    json_object_update(env, (json_t *)s->task.env);
    json_object_del(env, "DET_USER_TOKEN");
    add_master(env, s);
    add_devices(env, s);
    add_host(env, s, chief_addr);
    return env;
}

void taskenv_add_rank(json_t *env, const struct taskspec *s, int local)
{
    format_variable(env, "RANK", "%d", taskspec_first_rank(s) + local);
    format_variable(env, "WORLD_SIZE", "%d", taskspec_world_size(s));
    format_variable(env, "LOCAL_RANK", "%d", local);
    format_variable(env, "LOCAL_WORLD_SIZE", "%d", taskspec_local_size(s));
    format_variable(env, "LOCAL_SIZE", "%d", taskspec_local_size(s));
    format_variable(env, "GROUP_RANK", "%d", s->task.node);
    format_variable(env, "GROUP_WORLD_SIZE", "%d", s->task.nodes);
    format_variable(env, "CROSS_RANK", "%d", s->task.node);
    format_variable(env, "CROSS_SIZE", "%d", s->task.nodes);
    set_missing(env, "C10D_PORT", "29400");
}

void taskenv_add_files(json_t *env, const struct taskspec *s, int local)
{
    format_variable(env, PROGRESS_ENV, "%s/run/progress.%d", s->dir, local);
    format_variable(env, SPOOL_ENV, "%s/run/reports.%d", s->dir, local);
}

char **taskenv_vector(const json_t *env)
{
    char **v = det_zalloc((json_object_size(env) + 1) * sizeof *v);
    const char *name;
    json_t *value;
    size_t n = 0;
    json_object_foreach((json_t *)env, name, value)
    {
        v[n++] = det_asprintf("%s=%s", name, json_is_string(value) ? json_string_value(value) : "");
    }
    return v;
}

void taskenv_vector_destroy(char **v)
{
    for (size_t i = 0; v && v[i]; i++)
        free(v[i]);
    free(v);
}

/* ---- info files ---- */

/* A variable as the JSON it holds; null when absent or broken. */
static json_t *parse_variable(const json_t *env, const char *name)
{
    const char *s = json_str(env, name, NULL);
    json_t *j = s ? json_parse(s, strlen(s), NULL) : NULL;
    return j ? j : json_null();
}

static json_t *or_null(const json_t *env, const char *name)
{
    const char *s = json_str(env, name, NULL);
    return s ? json_string(s) : json_null();
}

static json_t *read_number(const json_t *env, const char *name)
{
    return json_integer(json_int(env, name, 0));
}

static json_t *cluster_json(const struct taskspec *s, const json_t *env)
{
    json_t *j = json_object();
    det_cleanup(freep) char *url = first_master(s);
    json_set(j, "master_url", json_string(url));
    json_set(j, "cluster_id", or_null(env, "DET_CLUSTER_ID"));
    json_set(j, "agent_id", json_string(s->agent_id));
    json_set(j, "slot_ids", parse_variable(env, "DET_SLOT_IDS"));
    json_set(j, "task_id", json_string(s->task.task_id));
    json_set(j, "allocation_id", json_string(s->alloc));
    json_set(j, "session_token", json_string(s->task.token));
    json_set(j, "task_type", json_string(s->task.kind));
    json_set(j, "master_cert_name", or_null(env, "DET_MASTER_CERT_NAME"));
    json_set(j, "master_cert_file", or_null(env, "DET_MASTER_CERT_FILE"));
    json_set(j, "latest_checkpoint", or_null(env, "DET_LATEST_CHECKPOINT"));
    return j;
}

static json_t *trial_json(const json_t *env)
{
    JSON_OWN config = parse_variable(env, "DET_EXPERIMENT_CONFIG");
    json_t *j = json_object();
    json_set(j, "trial_id", read_number(env, "DET_TRIAL_ID"));
    json_set(j, "experiment_id", read_number(env, "DET_EXPERIMENT_ID"));
    json_set(j, "trial_seed", read_number(env, "DET_TRIAL_SEED"));
    json_set(j, "hparams", parse_variable(env, "DET_HPARAMS"));
    json_set(j, "config", json_incref(config));
    json_set(j, "steps_completed", read_number(env, "DET_STEPS_COMPLETED"));
    json_set(j, "trial_run_id", read_number(env, "DET_TRIAL_RUN_ID"));
    json_set(j, "debug", json_boolean(json_is_true(json_path(config, "debug"))));
    json_set(j, "inter_node_network_interface", or_null(env, "DET_INTER_NODE_NETWORK_INTERFACE"));
    return j;
}

static json_t *resources_json(const struct taskspec *s)
{
    json_t *uuids = json_array();
    for (size_t i = 0; i < s->task.slots_n; i++) {
        const json_t *slot = taskspec_slot(s, i);
        if (slot && strcmp(json_str(slot, "type", "cpu"), "cuda") == 0)
            json_array_append_new(uuids, json_string(json_str(slot, "uuid", "")));
    }
    json_t *j = json_object();
    json_set(j, "gpu_uuids", uuids);
    return j;
}

static json_t *rendezvous_json(const struct taskenv_nodes *n)
{
    json_t *j = json_object();
    json_set(j, "container_addrs", json_deep_copy(n->addrs));
    json_set(j, "container_rank", json_integer(n->rank));
    json_set(j, "container_slot_counts", json_deep_copy(n->slots));
    return j;
}

/* Not synced: these files die with the task. Takes j. */
static int write_json(int dirfd, const char *name, json_t *j, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    json_write(&b, j);
    json_decref(j);
    det_cleanup(det_closep) int fd =
        fsx_open_beneath(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600, err);
    return fd < 0 ? fd : fsx_write_all(fd, b.p, b.len, err);
}

void taskenv_leave_out_long(json_t *env)
{
    static const char *const names[] = {"DET_EXPERIMENT_CONFIG", "DET_HPARAMS"};
    for (size_t i = 0; i < DET_ARRAY_LEN(names); i++)
        if (strlen(names[i]) + strlen("=") + strlen(json_str(env, names[i], "")) >= VARIABLE_MAX)
            json_object_del(env, names[i]);
}

int taskenv_write_info(const struct taskspec *s, const json_t *env, const struct taskenv_nodes *n,
                       struct det_err *err)
{
    int rc = taskspec_user_enter(s, err);
    if (rc < 0)
        return rc;
    det_cleanup(det_closep) int fd =
        fsx_open_beneath(s->dirfd, "info", O_RDONLY | O_DIRECTORY, 0, err);
    rc = fd < 0 ? fd : write_json(fd, "cluster.json", cluster_json(s, env), err);
    if (rc == 0 && strcmp(s->task.kind, "TRIAL") == 0)
        rc = write_json(fd, "trial.json", trial_json(env), err);
    if (rc == 0)
        rc = write_json(fd, "resources.json", resources_json(s), err);
    if (rc == 0)
        rc = write_json(fd, "rendezvous.json", rendezvous_json(n), err);
    taskspec_user_leave(s);
    return rc < 0 ? det_wrap(err, rc, "info files") : 0;
}
