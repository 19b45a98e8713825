#include "prom.h"

#include "json.h"
#include "mem.h"

#include <stdio.h>

void prom_family(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void add_label_value(struct buf *out, const char *s)
{
    for (; *s; s++)
        if (*s == '\n')
            buf_add_str(out, "\\n");
        else if (*s == '"' || *s == '\\')
            buf_addf(out, "\\%c", *s);
        else
            buf_add_ch(out, *s);
}

void prom_sample(struct buf *out, const char *name, const char *const *labels, double value)
{
    buf_add_str(out, name);
    for (const char *const *l = labels; l && *l; l += 2) {
        buf_addf(out, "%s%s=\"", l == labels ? "{" : ",", l[0]);
        add_label_value(out, l[1]);
        buf_add_ch(out, '"');
    }
    buf_add_str(out, labels && *labels ? "} " : " ");
    json_write_finite(out, value);
    buf_add_ch(out, '\n');
}

void prom_single(struct buf *out, const char *name, const char *type, const char *help,
                 double value)
{
    prom_family(out, name, type, help);
    prom_sample(out, name, NULL, value);
}

void prom_hist(struct buf *out, const char *name, const char *help, const struct hist *h)
{
    uint64_t sum = 0;
    det_cleanup(freep) char *bucket = det_asprintf("%s_bucket", name);
    det_cleanup(freep) char *total = det_asprintf("%s_sum", name);
    det_cleanup(freep) char *count = det_asprintf("%s_count", name);
    prom_family(out, name, "histogram", help);
    for (int i = 0; i <= HIST_BOUNDS; i++) {
        char bound[32] = "+Inf";
        sum += h->n[i];
        if (i < HIST_BOUNDS)
            snprintf(bound, sizeof bound, "%g", (double)hist_bounds_us[i] / 1e6);
        prom_sample(out, bucket, PROM_LABELS("le", bound), (double)sum);
    }
    prom_sample(out, total, NULL, h->sum_s);
    prom_sample(out, count, NULL, (double)h->count);
}
