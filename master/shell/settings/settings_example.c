#include "settings.h"

#include "mem.h"
#include <string.h>

/* How many segments two paths have in common, "list[]" counted as one; the last one of a path is
 * its own. */
static int shared_depth(const char *a, const char *b)
{
    int depth = 0;
    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        depth += a[i] == '.';
    return depth;
}

/* The maps and lists on the way to s that the entry before it has not opened. Returns the
 * indentation of s; *ret_dash says that it begins a member of a list. */
static int open_maps(const struct setting *s, const char *before, struct buf *out, bool *ret_dash)
{
    int depth = 0, indent = 0, known = shared_depth(s->path, before);
    const char *p = s->path;
    *ret_dash = false;
    for (const char *dot; (dot = strchr(p, '.')); p = dot + 1, depth++) {
        bool list = dot[-1] == ']';
        int n = (int)(dot - p) - (list ? 2 : 0);
        if (depth >= known)
            buf_addf(out, "#%*s%s%.*s:\n", indent, "", *ret_dash ? "- " : "", n, p);
        *ret_dash = list && depth >= known;
        indent += list ? 4 : 2;
    }
    return indent;
}

static void add_prose(const struct setting *s, struct buf *out)
{
    det_cleanup(freep) char *env = settings_env_name(s);
    buf_addf(out, "# %s: %s.\n", s->path, s->help);
    struct buf what = BUF_INIT;
    setting_describe(s, &what);
    buf_addf(out, "# (%s", buf_str(&what));
    buf_finish(&what);
    if (s->example)
        buf_addf(out, ", such as %s", s->example);
    if (s->option)
        buf_addf(out, "; --%s", s->option);
    if (env)
        buf_addf(out, "; %s", env);
    buf_add_str(out, ")\n");
}

static const char *shown_fallback(const struct setting *s)
{
    if (!s->fallback)
        return "null";
    return *s->fallback ? s->fallback : "\"\"";
}

void settings_example(const struct settings *t, struct buf *out)
{
    const char *before = "";
    buf_add_str(out, "# master.yaml: every setting of det-master with its default. What is given "
                     "counts in this order:\n# options, the environment, this file, the "
                     "default. A value of null is one that is not set.\n");
    for (size_t i = 0; i < t->n; i++) {
        const struct setting *s = &t->v[i];
        const char *dot = strrchr(s->path, '.');
        bool dash;
        buf_add_ch(out, '\n');
        add_prose(s, out);
        int indent = open_maps(s, before, out, &dash);
        buf_addf(out, "#%*s%s%s: %s\n", dash ? indent - 2 : indent, "", dash ? "- " : "",
                 dot ? dot + 1 : s->path, shown_fallback(s));
        before = s->path;
    }
}
