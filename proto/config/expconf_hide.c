#include "expconf_hide.h"

#include "yamljson.h"
#include <stdlib.h>
#include <string.h>

#define KEY "registry_auth\""
static const char *const secret_keys[] = {"password", "auth", "identitytoken", "registrytoken"};

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

/* The secret of that key, borrowed; NULL: none. */
static const char *find_secret(const json_t *auth, const char *key)
{
    const char *s = json_str(auth, key, "");
    return *s ? s : NULL;
}

void expconf_hide(json_t *config)
{
    json_t *auth = json_obj(json_obj(config, "environment"), "registry_auth");
    for (size_t i = 0; i < DET_ARRAY_LEN(secret_keys); i++)
        if (find_secret(auth, secret_keys[i]))
            json_set(auth, secret_keys[i], json_string(EXPCONF_HIDDEN));
}

/* Takes text; the same with `what` replaced, malloc'd. */
static char *replace_all(char *text, const char *what)
{
    struct buf out = BUF_INIT;
    const char *from = text, *at;
    while ((at = strstr(from, what)) != NULL) {
        buf_add(&out, from, (size_t)(at - from));
        buf_add_str(&out, EXPCONF_HIDDEN);
        from = at + strlen(what);
    }
    buf_add_str(&out, from);
    free(text);
    return buf_steal(&out);
}

static int compare_longer(const void *a, const void *b)
{
    size_t x = strlen(*(const char *const *)a), y = strlen(*(const char *const *)b);
    return (x < y) - (x > y);
}

/* The longest first: one may be a part of another. */
static char *replace_secrets(const char *yaml, const json_t *config)
{
    const json_t *auth = json_obj(json_obj(config, "environment"), "registry_auth");
    const char *secrets[DET_ARRAY_LEN(secret_keys)];
    size_t n = 0;
    for (size_t i = 0; i < DET_ARRAY_LEN(secret_keys); i++) {
        const char *s = find_secret(auth, secret_keys[i]);
        if (s)
            secrets[n++] = s;
    }
    qsort(secrets, n, sizeof *secrets, compare_longer);
    char *text = det_strdup(yaml);
    for (size_t i = 0; i < n; i++)
        text = replace_all(text, secrets[i]);
    return text;
}

/* Whether text says just what hidden does: a secret that is written in another way is still in it,
 * and a short one may have stood in other places too. */
static bool matches_hidden(const char *text, const json_t *hidden)
{
    JSON_OWN got = NULL;
    struct det_err err;
    return yamljson_parse(text, strlen(text), &got, &err) == 0 && json_equal(got, hidden);
}

char *expconf_hide_text(const char *yaml)
{
    JSON_OWN config = NULL;
    struct det_err err;
    if (yamljson_parse(yaml, strlen(yaml), &config, &err) < 0)
        return det_strdup("# " EXPCONF_HIDDEN "\n");
    char *text = replace_secrets(yaml, config);
    expconf_hide(config);
    if (matches_hidden(text, config))
        return text;
    free(text);
    struct buf out = BUF_INIT;
    json_write_pretty(&out, config);
    buf_add_ch(&out, '\n');
    return buf_steal(&out);
}

static void hide_member(json_t *obj, const char *key, json_t *v)
{
    if (!strcmp(key, "config") || !strcmp(key, "experimentConfig"))
        expconf_hide(v);
    if (strcmp(key, "originalConfig") != 0 || !json_is_string(v)) {
        expconf_hide_answer(v);
        return;
    }
    det_cleanup(freep) char *text = expconf_hide_text(json_string_value(v));
    json_object_set_new(obj, key, json_string(text));
}

void expconf_hide_answer(json_t *answer)
{
    const char *key;
    json_t *v;
    size_t i;
    void *next;
    json_object_foreach_safe(answer, next, key, v) hide_member(answer, key, v);
    json_array_foreach(answer, i, v) expconf_hide_answer(v);
}
