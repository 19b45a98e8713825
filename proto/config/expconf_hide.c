#include "expconf_hide.h"

#include <string.h>

#define KEY "registry_auth\""
static const char *const secret_keys[] = {"password", "auth", "identitytoken", "registrytoken"};

struct secrets {
    json_t *v[DET_ARRAY_LEN(secret_keys)]; /* own: what they stand in is changed */
    size_t n;
};

bool expconf_may_hide(const char *json, size_t len)
{
    const char *end = json + len, *p = json;
    while ((p = memmem(p, (size_t)(end - p), KEY, strlen(KEY))) != NULL) {
        p += strlen(KEY);
        while (p < end && (*p == ' ' || *p == ':'))
            p++;
        if (p < end && *p == '{')
            return true;
    }
    return false;
}

static void find_secrets(const json_t *config, struct secrets *s)
{
    const json_t *auth = json_obj(json_obj(config, "environment"), "registry_auth");
    for (size_t i = 0; i < DET_ARRAY_LEN(secret_keys); i++)
        if (*json_str(auth, secret_keys[i], ""))
            s->v[s->n++] = json_incref(json_object_get(auth, secret_keys[i]));
}

static bool is_secret(const struct secrets *s, const json_t *v)
{
    for (size_t i = 0; i < s->n; i++)
        if (json_equal(v, s->v[i]))
            return true;
    return false;
}

/* Each value that is one, wherever it stands: YAML's aliases put it in several places. */
static void hide_values(json_t *in, const struct secrets *s)
{
    const char *key;
    json_t *v;
    size_t i;
    void *next;
    json_object_foreach_safe(in, next, key, v)
    {
        if (is_secret(s, v))
            json_set(in, key, json_string(EXPCONF_HIDDEN));
        else
            hide_values(v, s);
    }
    json_array_foreach(in, i, v)
    {
        if (is_secret(s, v))
            json_array_set_new(in, i, json_string(EXPCONF_HIDDEN));
        else
            hide_values(v, s);
    }
}

void expconf_hide(json_t *config)
{
    struct secrets s = {0};
    find_secrets(config, &s);
    if (s.n)
        hide_values(config, &s);
    for (size_t i = 0; i < s.n; i++)
        json_decref(s.v[i]);
}

/* The text as it was sent has them in ways that only a reader of YAML finds, and lists are made in
 * the loop: what its configuration came to stands for it. */
static void hide_original(json_t *answer)
{
    if (!json_is_string(json_object_get(answer, "originalConfig")))
        return;
    const json_t *config = json_obj(answer, "config");
    struct buf out = BUF_INIT;
    if (config)
        json_write_pretty(&out, config);
    else
        buf_add_str(&out, "# " EXPCONF_HIDDEN);
    buf_add_ch(&out, '\n');
    json_set(answer, "originalConfig", json_string(buf_str(&out)));
    buf_finish(&out);
}

void expconf_hide_answer(json_t *answer)
{
    const char *key;
    json_t *v;
    size_t i;
    void *next;
    json_object_foreach_safe(answer, next, key, v)
    {
        if (!strcmp(key, "config") || !strcmp(key, "experimentConfig"))
            expconf_hide(v);
        expconf_hide_answer(v);
    }
    json_array_foreach(answer, i, v) expconf_hide_answer(v);
    hide_original(answer);
}
