#include "show.h"

#include "clk.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Results live until the eighth call after: enough for one printf. */
static char *next_slot(void)
{
    static char ring[8][64];
    static unsigned next;
    return ring[next++ % 8];
}

const char *show_state(const char *state)
{
    return state && strncmp(state, "STATE_", 6) == 0 ? state + 6 : state ? state : "";
}

const char *show_time(const char *t)
{
    char *s = next_slot();
    if (!t || strlen(t) < 19)
        return "";
    snprintf(s, 64, "%.10s %.8s", t, t + 11);
    return s;
}

bool show_seconds(const char *from, const char *to, double *ret)
{
    int64_t a, b = clk_wall_us();
    if (!from || clk_parse(from, &a, NULL) < 0 || (to && clk_parse(to, &b, NULL) < 0))
        return false;
    *ret = b > a ? (double)(b - a) / 1e6 : 0; /* what runs began by the master's clock */
    return true;
}

const char *show_duration(const char *from, const char *to)
{
    double sec;
    if (!show_seconds(from, to, &sec))
        return "";
    char *s = next_slot();
    if (sec < 60)
        snprintf(s, 64, "%.1f s", sec);
    else if (sec < 3600)
        snprintf(s, 64, "%dm %02ds", (int)sec / 60, (int)sec % 60);
    else
        snprintf(s, 64, "%dh %02dm", (int)(sec / 3600), (int)sec / 60 % 60);
    return s;
}

const char *show_progress(const json_t *value)
{
    if (!json_is_number(value))
        return "";
    char *s = next_slot();
    snprintf(s, 64, "%.0f%%", json_number_value(value) * 100);
    return s;
}

struct words {
    struct buf out;
    bool whole; /* lists with all they have, and numbers with a fraction in 5 digits */
};

/* 4 digits, but of a thousand and more no fraction. */
static void add_short(struct buf *out, double v)
{
    bool large = fabs(v) >= 1000 && fabs(v) < 1e15;
    buf_addf(out, large ? "%.0f" : "%.4g", v);
}

static void add_value(struct words *w, const json_t *v)
{
    if (json_is_real(v)) {
        if (w->whole)
            buf_addf(&w->out, "%.5g", json_real_value(v));
        else
            add_short(&w->out, json_real_value(v));
    } else if (json_is_string(v)) {
        buf_add_str(&w->out, json_string_value(v));
    } else if (json_is_array(v) && !w->whole) {
        buf_addf(&w->out, "[%zu value%s]", json_array_size(v), json_array_size(v) == 1 ? "" : "s");
    } else {
        char *text det_cleanup(freep) = json_text(v);
        buf_add_str(&w->out, text);
    }
}

static void add_word(struct words *w, const char *name, const json_t *v)
{
    buf_addf(&w->out, "%s%s=", w->out.len ? " " : "", name);
    add_value(w, v);
}

static void add_words(struct words *w, const char *prefix, const json_t *v, const json_t *common)
{
    if (!json_is_object(v)) {
        if (!common || !json_equal(v, common))
            add_word(w, prefix, v);
        return;
    }
    size_t n;
    const char **keys det_cleanup(freep) = json_sorted_keys(v, &n);
    for (size_t i = 0; i < n; i++) {
        char *name det_cleanup(freep) = det_asprintf("%s%s%s", prefix, *prefix ? "." : "", keys[i]);
        add_words(w, name, json_object_get(v, keys[i]), json_object_get(common, keys[i]));
    }
}

char *show_hparams(const json_t *hparams, const json_t *common)
{
    struct words w = {.out = BUF_INIT, .whole = true};
    if (json_is_object(hparams))
        add_words(&w, "", hparams, common);
    return buf_steal(&w.out);
}

char *show_metrics(const json_t *metrics)
{
    struct words w = {.out = BUF_INIT};
    if (json_is_object(metrics))
        add_words(&w, "", metrics, NULL);
    return buf_steal(&w.out);
}

/* What both have the same, a new reference; NULL: nothing. */
static json_t *intersect_json(json_t *a, const json_t *b)
{
    if (!json_is_object(a) || !json_is_object(b))
        return json_equal(a, b) ? json_incref(a) : NULL;
    json_t *both = json_object(), *v;
    const char *key;
    json_object_foreach(a, key, v)
    {
        json_t *same = intersect_json(v, json_object_get(b, key));
        if (same)
            json_object_set_new(both, key, same);
    }
    return both;
}

json_t *show_common_hparams(const json_t *trials)
{
    json_t *first = json_object_get(json_array_get(trials, 0), "hparams");
    json_t *common = json_incref(first);
    for (size_t i = 1; common && i < json_array_size(trials); i++) {
        json_t *less =
            intersect_json(common, json_object_get(json_array_get(trials, i), "hparams"));
        json_decref(common);
        common = less;
    }
    if (!json_equal(common, first))
        return common;
    json_decref(common);
    return NULL;
}

const char *show_bytes(double bytes)
{
    static const char *const unit[] = {"B", "KB", "MB", "GB", "TB"};
    size_t u = 0;
    for (; bytes >= 1000 && u + 1 < DET_ARRAY_LEN(unit); u++)
        bytes /= 1000;
    char *s = next_slot();
    snprintf(s, 64, u ? "%.1f %s" : "%.0f %s", bytes, unit[u]);
    return s;
}

char *show_value(const json_t *value)
{
    struct words w = {.out = BUF_INIT};
    if (value && !json_is_null(value))
        add_value(&w, value);
    return buf_steal(&w.out);
}

const char *show_number(double value)
{
    char *s = next_slot();
    struct buf b = BUF_INIT;
    add_short(&b, value);
    snprintf(s, 64, "%s", buf_str(&b));
    buf_finish(&b);
    return s;
}

const char *show_metric(const json_t *value)
{
    if (json_is_string(value))
        return json_string_value(value);
    return json_is_number(value) ? show_number(json_number_value(value)) : "";
}

char *show_store_place(const json_t *storage)
{
    const char *root = json_str(storage, "host_path", json_str(storage, "container_path", NULL));
    const char *sub = json_str(storage, "storage_path", NULL);
    if (root && sub && sub[0] != '/')
        return det_asprintf("%s/%s", root, sub);
    return root ? det_strdup(sub ? sub : root) : NULL;
}

char *show_checkpoint_place(const json_t *checkpoint)
{
    char *root det_cleanup(freep) =
        show_store_place(json_path(checkpoint, "training.experimentConfig.checkpoint_storage"));
    return root ? det_asprintf("%s/%s", root, json_str(checkpoint, "uuid", "")) : NULL;
}
