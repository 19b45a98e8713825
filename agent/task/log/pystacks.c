#include "pystacks.h"

#include "mem.h"
#include "traceback.h"
#include "vec.h"

#include <stdio.h>
#include <string.h>

#define KEPT_BYTES_MAX (1 << 20)
#define PLACES_MAX     64

struct pystacks {
    VEC(struct logline) lines; /* their text is ours */
    VEC(char *) places;        /* of the user's own code, one a thread */
    size_t bytes;
    bool is_placed; /* the thread whose frames are coming has its place */
};

struct pystacks *pystacks_create(void)
{
    return det_zalloc(sizeof(struct pystacks));
}

static void clear_stacks(struct pystacks *p)
{
    for (size_t i = 0; i < p->lines.n; i++)
        free((void *)p->lines.v[i].text);
    for (size_t i = 0; i < p->places.n; i++)
        free(p->places.v[i]);
    vec_free(&p->lines);
    vec_free(&p->places);
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
    if (p->is_placed || p->places.n == PLACES_MAX ||
        sscanf(text, " File \"%1023[^\"]\", line %d in %127[^\n]", path, &line, function) != 3)
        return;
    const char *file = traceback_users_file(path, dir);
    if (!file)
        return;
    p->is_placed = true;
    vec_push(&p->places, det_asprintf("%s, line %d, in %s", file, line, function));
}

bool pystacks_line(struct pystacks *p, const char *dir, const struct logline *l)
{
    bool is_head = strstr(l->text, "(most recent call first)") != NULL;
    bool is_inside = p->lines.n > 0 && (strncmp(l->text, "  ", 2) == 0 || *l->text == '\n');
    if ((!is_head && !is_inside) || p->bytes + l->len > KEPT_BYTES_MAX)
        return false;
    if (is_head)
        p->is_placed = false;
    else
        find_place(p, dir, l->text);
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

void pystacks_end(struct pystacks *p, void (*at)(void *arg, const char *where),
                  pystacks_line_fn *line, void *arg)
{
    for (size_t i = p->places.n; i-- > 0;)
        at(arg, p->places.v[i]);
    for (size_t i = 0; i < p->lines.n; i++)
        line(arg, &p->lines.v[i]);
    clear_stacks(p);
}
