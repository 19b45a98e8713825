/* The checks of a merged configuration: what is required, and what only several keys together can
 * get wrong. */
#include "expconf_schema.h"

#include "hparam.h"
#include <string.h>

static void require_key(struct expconf_walk *w, const struct expconf_key *key, json_t *obj,
                        const char *name, json_t *v)
{
    if (!key->required || v || strcmp(key->path, "name") == 0)
        return; /* a name is generated */
    const char *dot = strrchr(key->path, '.');
    det_cleanup(freep) char *prefix = det_strndup(key->path, dot ? (size_t)(dot - key->path) : 0);
    const char *kind_key = expconf_kind_key(prefix);
    const char *kind = kind_key ? json_str(obj, kind_key, NULL) : NULL;
    if (key->kinds && (!kind || !expconf_word_in(key->kinds, kind)))
        return;
    mistakes_add(w->errs, buf_str(&w->where), "missing%s%s", key->example ? "; write e.g. " : "",
                 key->example ? key->example : "");
}

static void check_both(const json_t *config, struct mistakes *errs)
{
    bool workspace = *json_str(config, "workspace", ""), project = *json_str(config, "project", "");
    if (workspace != project)
        mistakes_add(errs, workspace ? "project" : "workspace",
                     "missing; workspace and project go together: give both or neither");
}

/* Searchers that are gone and stores that later versions bring are refused by name, after all the
 * rest of them was checked. */
static void refuse_kind(const json_t *config, const char *block, const char *key,
                        const char *available, const char *words, struct mistakes *errs)
{
    const char *kind = json_str(json_obj(config, block), key, NULL);
    const struct expconf_key *known = expconf_key_find(block, key);
    if (!kind || expconf_word_in(available, kind) || !expconf_word_in(known->choices, kind))
        return;
    det_cleanup(freep) char *path = det_asprintf("%s.%s", block, key);
    mistakes_add(errs, path, "%s is not available in this version; use %s", kind, words);
}

static void check_grid(const json_t *config, struct mistakes *errs)
{
    if (strcmp(json_str(json_obj(config, "searcher"), "name", ""), "grid") != 0)
        return;
    const json_t *space = json_obj(config, "hyperparameters");
    size_t before = errs->n;
    hparam_check_counts(space, "hyperparameters", errs);
    if (before == 0 && errs->n == 0 && hparam_grid_points(space) > HPARAM_GRID_MAX)
        mistakes_add(
            errs, "hyperparameters",
            "the grid has more than %d points; lower the counts or use the random searcher",
            HPARAM_GRID_MAX);
}

static void check_asha_length(const json_t *searcher, struct mistakes *errs)
{
    if (strcmp(json_str(searcher, "name", ""), "async_halving") == 0 &&
        json_is_number(json_object_get(searcher, "max_length")))
        mistakes_add(errs, "searcher.max_length",
                     "async_halving needs a length with a unit; write e.g. {batches: 1000}");
}

/* storage_path is relative, or absolute below host_path. */
static void check_storage_path(const json_t *storage, struct mistakes *errs)
{
    const char *host = json_str(storage, "host_path", ""),
               *path = json_str(storage, "storage_path", "");
    size_t n = strlen(host);
    while (n > 1 && host[n - 1] == '/')
        n--;
    if (*path != '/' || !*host)
        return;
    bool below = n == 1 || (strncmp(path, host, n) == 0 && (path[n] == '/' || !path[n]));
    if (!below)
        mistakes_add(errs, "checkpoint_storage.storage_path",
                     "an absolute storage_path must lie below host_path; write a relative one, "
                     "e.g. checkpoints");
}

static void check_azure(const json_t *storage, struct mistakes *errs)
{
    bool string = json_str(storage, "connection_string", NULL);
    bool url = json_str(storage, "account_url", NULL);
    if (string == url)
        mistakes_add(errs, "checkpoint_storage",
                     "azure needs either connection_string or account_url");
    if (string && json_str(storage, "credential", NULL))
        mistakes_add(errs, "checkpoint_storage.credential", "does not go with connection_string");
}

static void check_storage(const json_t *config, struct mistakes *errs)
{
    const json_t *storage = json_obj(config, "checkpoint_storage");
    const char *type = json_str(storage, "type", "");
    if (strcmp(type, "shared_fs") == 0)
        check_storage_path(storage, errs);
    if (strcmp(type, "azure") == 0)
        check_azure(storage, errs);
    if (strcmp(type, "directory") == 0 && !*json_str(storage, "container_path", ""))
        mistakes_add(errs, "checkpoint_storage.container_path", "missing; write e.g. /checkpoints");
}

static void check_profiling(const json_t *config, struct mistakes *errs)
{
    const json_t *p = json_obj(config, "profiling");
    int64_t begin = json_int(p, "begin_on_batch", 0);
    if (json_object_get(p, "end_after_batch") && json_int(p, "end_after_batch", begin) < begin)
        mistakes_add(errs, "profiling.end_after_batch",
                     "expected a batch not before begin_on_batch");
}

void expconf_check_whole(const json_t *config, bool unmanaged, struct mistakes *errs)
{
    if (!json_is_object(config))
        return;
    struct expconf_walk w = {.on_key = require_key, .errs = errs};
    expconf_walk(&w, (json_t *)config);
    if (!unmanaged && !json_object_get(config, "entrypoint"))
        mistakes_add(
            errs, "entrypoint",
            "missing; write e.g. model_def:MyTrial, or a command such as python3 train.py");
    check_both(config, errs);
    check_storage(config, errs);
    check_profiling(config, errs);
    check_asha_length(json_obj(config, "searcher"), errs);
    check_grid(config, errs);
    refuse_kind(config, "searcher", "name", "single random grid adaptive_asha async_halving custom",
                "adaptive_asha, which replaces it", errs);
    refuse_kind(config, "checkpoint_storage", "type", "shared_fs directory",
                "shared_fs or directory", errs);
}
