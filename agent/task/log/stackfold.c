#include "stackfold.h"

#include "buf.h"
#include "mem.h"
#include "vec.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { FRAMES_MAX = 24, NAME_MAX_LEN = 80, PATH_MAX_LEN = 200, STACKS_MAX = 64, OTHERS_MAX = 20 };

struct stack {
    char *text;
    size_t threads;
};
struct stackfold {
    VEC(struct stack) stacks; /* in the order they were met */
    bool is_backwards;        /* gdb's, who gives the main thread last */
    size_t left_out;          /* threads of further stacks */
    struct buf frames;        /* of the thread in hand */
    size_t frames_n;
    VEC(char *) others; /* lines before any frame */
    stackfold_users_fn *is_users;
    void *arg;
    char *at, *place; /* of the thread in hand; of those before it */
};

struct stackfold *stackfold_create(stackfold_users_fn *is_users, void *arg)
{
    struct stackfold *f = det_zalloc(sizeof *f);
    f->is_users = is_users;
    f->arg = arg;
    return f;
}

void stackfold_destroy(struct stackfold *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->stacks.n; i++)
        free(f->stacks.v[i].text);
    for (size_t i = 0; i < f->others.n; i++)
        free(f->others.v[i]);
    vec_free(&f->stacks);
    vec_free(&f->others);
    buf_finish(&f->frames);
    free(f->at);
    free(f->place);
    free(f);
}

/* The main thread's counts: the last that gdb gives, else the first. */
static void keep_place(struct stackfold *f)
{
    if (f->at && (f->is_backwards || !f->place)) {
        free(f->place);
        f->place = det_take(f->at);
    }
    free(f->at);
    f->at = NULL;
}

/* The thread in hand is over. */
static void fold_thread(struct stackfold *f)
{
    keep_place(f);
    if (f->frames_n == 0)
        return;
    const char *text = buf_str(&f->frames);
    size_t i = 0;
    while (i < f->stacks.n && strcmp(f->stacks.v[i].text, text) != 0)
        i++;
    if (i < f->stacks.n)
        f->stacks.v[i].threads++;
    else if (i < STACKS_MAX)
        vec_push(&f->stacks, ((struct stack){det_strdup(text), 1}));
    else
        f->left_out++;
    buf_clear(&f->frames);
    f->frames_n = 0;
}

/* "./model_def.c:12", behind arguments, which may be texts; NULL: it is not known. */
static const char *source_of(const char *frame)
{
    static const char behind[] = ") at ";
    const char *found = NULL;
    for (const char *p = strstr(frame, behind); p; p = strstr(found, behind))
        found = p + sizeof behind - 1;
    return found;
}

/* source: "./model_def.c:12"; name: of the function, which has len bytes. */
static void note_place(struct stackfold *f, const char *name, int len, const char *source)
{
    det_cleanup(freep) char *file = det_strdup(source + 2 * (strncmp(source, "./", 2) == 0));
    char *colon = strrchr(file, ':');
    if (f->at || !f->is_users || !colon)
        return;
    *colon = '\0';
    if (*file && strlen(file) <= PATH_MAX_LEN && f->is_users(f->arg, file))
        f->at = det_asprintf("%s, line %.10s, in %.*s", file, colon + 1, len, name);
}

/* "#3  0x0000 in name (args) at dir/file.c:12" -> "name (file.c:12)"; the address and what follows
 * the name may be missing. */
static void add_frame(struct stackfold *f, const char *p)
{
    size_t n = strcspn(p, "\n");
    det_cleanup(freep) char *line = det_strndup(p, n);
    char *s = line;
    if (strncmp(s, "0x", 2) == 0) {
        s += strcspn(s, " ");
        s += strspn(s, " ");
        s += strncmp(s, "in ", 3) == 0 ? 3 : 0;
    }
    const char *at = source_of(s);
    const char *slash = at ? strrchr(at, '/') : NULL;
    const char *file = slash ? slash + 1 : at;
    char *end = strstr(s, " (");
    char *source = strstr(s, " - ");
    int len = (int)(end ? end - s : source ? source - s : (long)strlen(s));
    len = len < NAME_MAX_LEN ? len : NAME_MAX_LEN;
    if (at)
        note_place(f, s, len, at);
    if (++f->frames_n > FRAMES_MAX)
        return;
    buf_addf(&f->frames, "%s%.*s", f->frames.len ? " < " : "", len, len > 0 ? s : "??");
    if (file)
        buf_addf(&f->frames, " (%.60s)", file);
}

static void on_thread(struct stackfold *f, bool is_gdb)
{
    fold_thread(f);
    f->is_backwards = is_gdb;
}

void stackfold_add(struct stackfold *f, const char *line)
{
    int n = 0;
    if (sscanf(line, "#%*d %n", &n) == 0 && n > 0)
        add_frame(f, line + n);
    else if (strncmp(line, "Thread ", 7) == 0)
        on_thread(f, true);
    else if (strncmp(line, "TID ", 4) == 0)
        on_thread(f, false);
    else if (f->stacks.n == 0 && f->frames_n == 0 && f->others.n < OTHERS_MAX && *line != '\n')
        vec_push(&f->others, det_strndup(line, strcspn(line, "\n")));
}

const char *stackfold_place(struct stackfold *f)
{
    fold_thread(f);
    return f->place;
}

static void give_line(void (*fn)(void *arg, const char *line), void *arg, char *line)
{
    fn(arg, line);
    free(line);
}

void stackfold_end(struct stackfold *f, void (*fn)(void *arg, const char *line), void *arg)
{
    fold_thread(f);
    for (size_t i = 0; f->stacks.n == 0 && i < f->others.n; i++)
        give_line(fn, arg, det_asprintf("%s\n", f->others.v[i]));
    for (size_t i = 0; i < f->stacks.n; i++) {
        const struct stack *s = &f->stacks.v[f->is_backwards ? f->stacks.n - 1 - i : i];
        give_line(
            fn, arg,
            det_asprintf("%zu thread%s: %s\n", s->threads, s->threads == 1 ? "" : "s", s->text));
    }
    if (f->left_out)
        give_line(fn, arg, det_asprintf("%zu threads with further stacks\n", f->left_out));
}
