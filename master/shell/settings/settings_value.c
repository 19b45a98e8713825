#include "settings.h"

#include "mem.h"
#include "yamljson.h"
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

/* ---- one value ---- */

int setting_choice(const char *choices, const char *word)
{
    size_t n = strlen(word);
    int i = 0;
    for (const char *p = choices; *p; i++) {
        size_t len = strcspn(p, " ");
        if (len == n && strncasecmp(p, word, n) == 0)
            return i;
        p += len + (p[len] == ' ');
    }
    return -1;
}

static bool in_range(const struct setting *s, const json_t *v)
{
    int64_t max = s->min == 0 && s->max == 0 ? INT32_MAX : s->max;
    return json_is_integer(v) && json_integer_value(v) >= s->min && json_integer_value(v) <= max;
}

bool setting_fits(const struct setting *s, const json_t *v)
{
    switch (s->type) {
    case SETTING_TEXT:
        return json_is_string(v) && (s->max == 0 || json_string_length(v) <= (size_t)s->max);
    case SETTING_INT:
    case SETTING_SECONDS: return in_range(s, v);
    case SETTING_NUM:
        return json_is_number(v) && json_number_value(v) > 0 && isfinite(json_number_value(v));
    case SETTING_BOOL: return json_is_boolean(v);
    case SETTING_ENUM:
        return json_is_string(v) && setting_choice(s->choices, json_string_value(v)) >= 0;
    case SETTING_MAP: break;
    }
    return json_is_object(v);
}

static void describe_range(const struct setting *s, struct buf *out)
{
    int64_t max = s->min == 0 && s->max == 0 ? INT32_MAX : s->max;
    buf_addf(out, "a whole number%s from %lld to %lld",
             s->type == SETTING_SECONDS ? " of seconds" : "", (long long)s->min, (long long)max);
}

void setting_describe(const struct setting *s, struct buf *out)
{
    switch (s->type) {
    case SETTING_TEXT:
        buf_add_str(out, "text");
        if (s->max > 0)
            buf_addf(out, " of at most %lld bytes", (long long)s->max);
        break;
    case SETTING_INT:
    case SETTING_SECONDS: describe_range(s, out); break;
    case SETTING_NUM: buf_add_str(out, "a number above 0"); break;
    case SETTING_BOOL: buf_add_str(out, "true or false"); break;
    case SETTING_ENUM: buf_addf(out, "one of: %s", s->choices); break;
    case SETTING_MAP: buf_add_str(out, "a map"); break;
    }
}

/* ---- single values: environment and options ---- */

/* The member of map that path names; maps on the way are made. */
static void put_member(json_t *map, const char *path, json_t *value)
{
    size_t n = strcspn(path, ".");
    det_cleanup(freep) char *name = det_strndup(path, n);
    if (!path[n]) {
        json_set(map, name, value);
        return;
    }
    json_t *inner = json_object_get(map, name);
    if (!json_is_object(inner)) {
        inner = json_object();
        json_set(map, name, inner);
    }
    put_member(inner, path + n + 1, value);
}

void settings_set_text(const struct setting *s, json_t *raw, const char *label, const char *text,
                       struct mistakes *errs)
{
    bool word = s->type == SETTING_TEXT || s->type == SETTING_ENUM;
    JSON_OWN v = word ? json_string(text) : NULL;
    if (!word && s->type != SETTING_MAP)
        v = yamljson_scalar(text, strlen(text));
    else if (!word)
        det_ignore(yamljson_parse(text, strlen(text), &v, NULL), "v stays NULL");
    if (v && setting_fits(s, v)) {
        put_member(raw, s->path, det_take(v));
        return;
    }
    struct buf what = BUF_INIT;
    setting_describe(s, &what);
    struct buf got = BUF_INIT;
    mistakes_quote(&got, s->secret ? "********" : text, 80);
    mistakes_add(errs, label, "expected %s, got \"%s\"", buf_str(&what), buf_str(&got));
    buf_finish(&what);
    buf_finish(&got);
}

char *settings_env_name(const struct setting *s)
{
    if (strchr(s->path, '['))
        return NULL;
    char *name = det_asprintf("DET_%s", s->path);
    for (char *p = name; *p; p++)
        *p = *p == '.' ? '_' : (char)toupper((unsigned char)*p);
    return name;
}

void settings_set_env(const struct settings *t, json_t *raw, char **env, struct mistakes *errs)
{
    for (size_t i = 0; i < t->n; i++) {
        det_cleanup(freep) char *name = settings_env_name(&t->v[i]);
        size_t n = name ? strlen(name) : 0;
        for (char **e = env; name && *e; e++)
            if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
                settings_set_text(&t->v[i], raw, name, *e + n + 1, errs);
    }
}

/* ---- filling and masking ---- */

static json_t *fallback_of(const struct setting *s)
{
    json_t *v = NULL;
    if (s->fallback && (s->type == SETTING_TEXT || s->type == SETTING_ENUM))
        return json_string(s->fallback);
    if (s->fallback)
        det_ignore(yamljson_parse(s->fallback, strlen(s->fallback), &v, NULL), "v stays NULL");
    return v ? v : json_null();
}

/* What is done at the end of a setting's path, wherever it leads; NULL removes nothing. */
typedef json_t *leaf_fn(const struct setting *s, const json_t *from);

static void visit_setting(const struct setting *s, const char *rest, json_t *to, const json_t *from,
                          leaf_fn *fn);

static json_t *ensure_member(json_t *map, const char *name, json_t *(*make)(void))
{
    json_t *v = json_object_get(map, name);
    if (!v) {
        v = make();
        json_set(map, name, v);
    }
    return v;
}

static void visit_list(const struct setting *s, const char *rest, json_t *to, const json_t *from,
                       leaf_fn *fn)
{
    size_t i;
    json_t *v;
    json_array_foreach(from, i, v)
    {
        if (i >= json_array_size(to))
            json_array_append_new(to, json_object());
        visit_setting(s, rest, json_array_get(to, i), v, fn);
    }
}

/* Rebuilds the part of `from` that leads to s in `to`, so that keys come in the table's order. */
static void visit_setting(const struct setting *s, const char *rest, json_t *to, const json_t *from,
                          leaf_fn *fn)
{
    size_t n = strcspn(rest, ".[");
    det_cleanup(freep) char *name = det_strndup(rest, n);
    const json_t *inner = json_object_get(from, name);
    if (!rest[n])
        json_set(to, name, fn(s, inner));
    else if (rest[n] == '[')
        visit_list(s, rest + n + 3, ensure_member(to, name, json_array), inner, fn);
    else
        visit_setting(s, rest + n + 1, ensure_member(to, name, json_object), inner, fn);
}

static json_t *leaf_fill(const struct setting *s, const json_t *from)
{
    if (!from || json_is_null(from))
        return fallback_of(s);
    return json_deep_copy(from);
}

static json_t *leaf_mask(const struct setting *s, const json_t *from)
{
    if (s->secret && json_is_string(from))
        return json_string("********");
    return json_deep_copy(from);
}

static json_t *rebuild_map(const struct settings *t, const json_t *from, leaf_fn *fn)
{
    json_t *to = json_object();
    for (size_t i = 0; i < t->n; i++)
        visit_setting(&t->v[i], t->v[i].path, to, from, fn);
    return to;
}

json_t *settings_fill(const struct settings *t, const json_t *raw)
{
    return rebuild_map(t, raw, leaf_fill);
}

json_t *settings_mask(const struct settings *t, const json_t *tree)
{
    return rebuild_map(t, tree, leaf_mask);
}

/* ---- binding ---- */

static void bind_number(const struct setting *s, void *at, int64_t v)
{
    if (s->bytes == sizeof(int64_t))
        memcpy(at, &v, sizeof v);
    else
        *(int *)at = (int)v;
}

static void bind_value(const struct setting *s, const json_t *v, void *at)
{
    switch (s->type) {
    case SETTING_TEXT: *(char **)at = det_strdup(json_string_value(v)); break;
    case SETTING_INT: bind_number(s, at, json_integer_value(v)); break;
    case SETTING_SECONDS: bind_number(s, at, json_integer_value(v) * 1000); break;
    case SETTING_NUM: *(double *)at = json_number_value(v); break;
    case SETTING_BOOL: *(bool *)at = json_is_true(v); break;
    case SETTING_ENUM: bind_number(s, at, setting_choice(s->choices, json_string_value(v))); break;
    case SETTING_MAP: break;
    }
}

void settings_bind(const struct settings *t, const json_t *tree, void *to)
{
    for (size_t i = 0; i < t->n; i++) {
        const json_t *v = t->v[i].at ? json_path(tree, t->v[i].path) : NULL;
        if (v && !json_is_null(v))
            bind_value(&t->v[i], v, (char *)to + t->v[i].at);
    }
}

void settings_unbind(const struct settings *t, void *from)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].at && t->v[i].type == SETTING_TEXT)
            free(*(char **)((char *)from + t->v[i].at));
}
