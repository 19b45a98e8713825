#include "datapaths.h"

#include "find.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void add_path(json_t *paths, const char *name, const char *text)
{
    if (text[0] != '/' || !text[1] || json_array_size(paths) >= DATAPATHS_MAX)
        return;
    json_t *pair = json_array();
    json_array_append_new(pair, json_string(name));
    json_array_append_new(pair, json_string(text));
    json_array_append_new(paths, pair);
}

static void walk_value(json_t *paths, struct buf *name, const json_t *v)
{
    const size_t len = name->len;
    const char *key;
    size_t i;
    json_t *one;
    if (json_is_string(v))
        add_path(paths, buf_str(name), json_string_value(v));
    json_object_foreach((json_t *)v, key, one)
    {
        buf_addf(name, ".%s", key);
        walk_value(paths, name, one);
        name->len = len;
    }
    json_array_foreach(v, i, one)
    {
        buf_addf(name, "[%zu]", i);
        walk_value(paths, name, one);
        name->len = len;
    }
}

static void walk_part(json_t *paths, const char *name, const json_t *v)
{
    det_cleanup(buf_finish) struct buf at = BUF_INIT;
    buf_add_str(&at, name);
    walk_value(paths, &at, v);
}

static json_t *parse_variable(const json_t *env, const char *name)
{
    const char *text = json_str(env, name, NULL);
    return text ? json_parse(text, strlen(text), NULL) : NULL;
}

json_t *datapaths_of(const json_t *env)
{
    JSON_OWN config = parse_variable(env, "DET_EXPERIMENT_CONFIG");
    JSON_OWN hparams = parse_variable(env, "DET_HPARAMS");
    json_t *paths = json_array(), *mount;
    size_t i;
    walk_part(paths, "data", json_obj(config, "data"));
    walk_part(paths, "hyperparameters", hparams);
    json_array_foreach(json_arr(config, "bind_mounts"), i, mount)
        add_path(paths, "bind_mounts", json_str(mount, "host_path", ""));
    return paths;
}

/* What is not there may yet be made; what does not let us look, another story. */
static bool is_unreadable(const char *path)
{
    struct stat st;
    int mode = stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? R_OK | X_OK : R_OK;
    return faccessat(AT_FDCWD, path, mode, AT_EACCESS) < 0 && errno == EACCES;
}

void datapaths_tell(const json_t *paths, const char *who, struct buf *out)
{
    size_t i;
    json_t *p;
    json_array_foreach(paths, i, p)
    {
        const char *path = json_string_value(json_array_get(p, 1));
        if (!is_unreadable(path))
            continue;
        det_cleanup(freep) char *folder = find_closed_folder(path);
        buf_addf(out, "%s: %s cannot be read: this task runs as %s, which may not %s %s%s\n",
                 json_string_value(json_array_get(p, 0)), path, who, folder ? "enter" : "use",
                 folder ? folder : "it",
                 folder ? "; to its code it looks as if nothing were there" : "");
    }
}
