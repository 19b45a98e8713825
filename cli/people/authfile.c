#include "authfile.h"

#include "fsx.h"
#include "json.h"
#include <fcntl.h>
#include <string.h>

char *authfile_directory(void)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (xdg && xdg[0] == '/')
        return det_asprintf("%s/determined", xdg);
    return home && home[0] == '/' ? det_asprintf("%s/.config/determined", home) : NULL;
}

static json_t *load_file(void)
{
    char *dir det_cleanup(freep) = authfile_directory();
    struct buf text = BUF_INIT;
    json_t *j = NULL;
    if (dir) {
        char *path det_cleanup(freep) = det_asprintf("%s/auth.json", dir);
        if (fsx_read_file(AT_FDCWD, path, 1 << 20, &text, NULL) == 0)
            j = json_parse(buf_str(&text), text.len, NULL);
        buf_finish(&text);
    }
    if (json_is_object(j) && json_obj(j, "masters"))
        return j;
    json_decref(j);
    return json_make("{s:i, s:{}}", "version", 2, "masters");
}

static json_t *master_of(json_t *all, const char *master)
{
    return json_obj(json_obj(all, "masters"), master);
}

char *authfile_active_user(const char *master)
{
    JSON_OWN all = load_file();
    return det_strdup(json_str(master_of(all, master), "active_user", NULL));
}

char *authfile_get(const char *master, const char *user)
{
    JSON_OWN all = load_file();
    return det_strdup(json_str(json_obj(master_of(all, master), "tokens"), user, NULL));
}

/* The object of that name, made where there is none; borrowed. */
static json_t *ensure_member(json_t *in, const char *name)
{
    if (!json_obj(in, name))
        json_set(in, name, json_object());
    return json_obj(in, name);
}

int authfile_put(const char *master, const char *user, const char *token, struct det_err *err)
{
    char *dir det_cleanup(freep) = authfile_directory();
    if (!dir)
        return 0; /* nowhere to keep it: every command logs in */
    JSON_OWN all = load_file();
    json_t *m = ensure_member(json_obj(all, "masters"), master);
    json_t *tokens = ensure_member(m, "tokens");
    if (token) {
        json_set(m, "active_user", json_string(user));
        json_set(tokens, user, json_string(token));
    } else {
        json_object_del(tokens, user);
        if (strcmp(json_str(m, "active_user", ""), user) == 0)
            json_set(m, "active_user", NULL);
    }
    char *text det_cleanup(freep) = json_text(all);
    char *path det_cleanup(freep) = det_asprintf("%s/auth.json", dir);
    int rc = fsx_mkdirs(AT_FDCWD, dir, 0700, err);
    if (rc == 0)
        rc = fsx_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, err);
    return rc < 0 ? det_wrap(err, rc, "keep the token") : 0;
}
