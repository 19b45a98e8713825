#include "pystacks.h"

#include "mem.h"
#include "traceback.h"
#include "vec.h"

#include <stdio.h>
#include <string.h>

#define KEPT_BYTES_MAX (1 << 20)
#define PLACES_MAX     64

struct thread {
    size_t first;   /* of its lines, the head */
    size_t lines_n; /* without what parts it from the next one */
    char *place;    /* where the user's own code is; NULL: nowhere */
};
struct pystacks {
    VEC(struct logline) lines; /* their text is ours */
    VEC(struct thread) threads;
    size_t bytes, places_n;
};

struct pystacks *pystacks_create(void)
{
    return det_zalloc(sizeof(struct pystacks));
}

static void clear_stacks(struct pystacks *p)
{
    for (size_t i = 0; i < p->lines.n; i++)
        free((void *)p->lines.v[i].text);
    for (size_t i = 0; i < p->threads.n; i++)
        free(p->threads.v[i].place);
    vec_free(&p->lines);
    vec_free(&p->threads);
    *p = (struct pystacks){0};
}

void pystacks_destroy(struct pystacks *p)
{
    if (!p)
        return;
    clear_stacks(p);
    free(p);
}

static void find_place(struct pystacks *p, const char *dir, const char *text)
{
    char path[1024], function[128];
    int line;
    struct thread *t = &p->threads.v[p->threads.n - 1];
    if (t->place || p->places_n == PLACES_MAX ||
        sscanf(text, " File \"%1023[^\"]\", line %d in %127[^\n]", path, &line, function) != 3)
        return;
    const char *file = traceback_users_file(path, dir);
    if (!file)
        return;
    p->places_n++;
    t->place = det_asprintf("%s, line %d, in %s", file, line, function);
}

bool pystacks_line(struct pystacks *p, const char *dir, const struct logline *l)
{
    bool is_head = strstr(l->text, "(most recent call first)") != NULL;
    bool is_inside = p->lines.n > 0 && (strncmp(l->text, "  ", 2) == 0 || *l->text == '\n');
    if ((!is_head && !is_inside) || p->bytes + l->len > KEPT_BYTES_MAX)
        return false;
    if (is_head)
        vec_push(&p->threads, (struct thread){.first = p->lines.n});
    else
        find_place(p, dir, l->text);
    p->threads.v[p->threads.n - 1].lines_n += *l->text != '\n';
    struct logline kept = *l;
    kept.text = det_strndup(l->text, l->len);
    vec_push(&p->lines, kept);
    p->bytes += l->len;
    return true;
}

size_t pystacks_kept(const struct pystacks *p)
{
    return p->lines.n;
}

/* The last one is the main thread's. */
static void tell_thread(struct pystacks *p, size_t i, pystacks_line_fn *line, void *arg)
{
    const struct thread *t = &p->threads.v[i];
    for (size_t k = 0; k < t->lines_n; k++)
        line(arg, &p->lines.v[t->first + k]);
}

static void tell_others(struct pystacks *p, bool with_place, pystacks_line_fn *line, void *arg)
{
    for (size_t i = p->threads.n - 1; i-- > 0;)
        if ((p->threads.v[i].place != NULL) == with_place)
            tell_thread(p, i, line, arg);
}

void pystacks_end(struct pystacks *p, void (*at)(void *arg, const char *where),
                  pystacks_line_fn *line, void *arg)
{
    for (size_t i = p->threads.n; i-- > 0;)
        if (p->threads.v[i].place)
            at(arg, p->threads.v[i].place);
    if (p->threads.n > 0) {
        tell_thread(p, p->threads.n - 1, line, arg);
        tell_others(p, true, line, arg);
        tell_others(p, false, line, arg);
    }
    clear_stacks(p);
}
