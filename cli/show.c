#include "show.h"

#include "clk.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Results live until the eighth call after: enough for one printf. */
static char *slot(void)
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
    char *s = slot();
    if (!t || strlen(t) < 19)
        return "";
    snprintf(s, 64, "%.10s %.8s", t, t + 11);
    return s;
}

const char *show_duration(const char *from, const char *to)
{
    int64_t a, b = clk_wall_us();
    if (!from || clk_parse(from, &a, NULL) < 0 || (to && clk_parse(to, &b, NULL) < 0))
        return "";
    double sec = (double)(b - a) / 1e6;
    char *s = slot();
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
    char *s = slot();
    snprintf(s, 64, "%.0f%%", json_number_value(value) * 100);
    return s;
}

static void hparam_words(struct buf *out, const char *prefix, const json_t *v)
{
    if (!json_is_object(v)) {
        char *text det_cleanup(freep) =
            json_is_string(v) ? det_strdup(json_string_value(v)) : json_text(v);
        buf_addf(out, "%s%s=%s", out->len ? " " : "", prefix, text);
        return;
    }
    size_t n;
    const char **keys det_cleanup(freep) = json_sorted_keys(v, &n);
    for (size_t i = 0; i < n; i++) {
        char *name det_cleanup(freep) = det_asprintf("%s%s%s", prefix, *prefix ? "." : "", keys[i]);
        hparam_words(out, name, json_object_get(v, keys[i]));
    }
}

char *show_hparams(const json_t *hparams)
{
    struct buf out = BUF_INIT;
    if (json_is_object(hparams))
        hparam_words(&out, "", hparams);
    return buf_steal(&out);
}

const char *show_bytes(double bytes)
{
    static const char *const unit[] = {"B", "KB", "MB", "GB", "TB"};
    size_t u = 0;
    for (; bytes >= 1000 && u + 1 < DET_ARRAY_LEN(unit); u++)
        bytes /= 1000;
    char *s = slot();
    snprintf(s, 64, u ? "%.1f %s" : "%.0f %s", bytes, unit[u]);
    return s;
}

const char *show_metric(const json_t *value)
{
    if (json_is_string(value))
        return json_string_value(value);
    if (!json_is_number(value))
        return "";
    char *s = slot();
    snprintf(s, 64, "%.6g", json_number_value(value));
    return s;
}

char *show_checkpoint_place(const json_t *checkpoint)
{
    const json_t *store = json_path(checkpoint, "training.experimentConfig.checkpoint_storage");
    const char *root = json_str(store, "host_path", json_str(store, "container_path", NULL));
    const char *sub = json_str(store, "storage_path", NULL);
    const char *uuid = json_str(checkpoint, "uuid", "");
    if (!root)
        return NULL;
    if (sub && sub[0] == '/')
        return det_asprintf("%s/%s", sub, uuid);
    return det_asprintf("%s/%s%s%s", root, sub ? sub : "", sub ? "/" : "", uuid);
}
