#include "traceback.h"

#include "agentlink.h"
#include "mem.h"
#include "pyframe.h"

#include <stdio.h>
#include <string.h>

static const char head[] = "Traceback (most recent call last):";
static const char cause[] = "The above exception was the direct cause of the following exception:";
static const char *const libraries[] = {"/lib/python3", "-packages/", "/determined/", "<"};

const char *traceback_users_file(const char *path, const char *dir)
{
    static const char work[] = "/" LINK_WORK_DIR "/";
    size_t n = strlen(dir);
    if (strncmp(path, dir, n) == 0 && strncmp(path + n, work, strlen(work)) == 0)
        return path + n + strlen(work);
    for (size_t i = 0; i < DET_ARRAY_LEN(libraries); i++)
        if (strstr(path, libraries[i]))
            return NULL;
    return path;
}

static void on_frame(struct traceback *t, const char *dir, const char *text)
{
    struct pyframe f;
    const char *file = pyframe_read(text, &f) ? traceback_users_file(f.path, dir) : NULL;
    if (file)
        pyframe_write(&f, file, t->next_at, sizeof t->next_at);
}

void traceback_line(struct traceback *t, const char *dir, int rank, const struct logline *l)
{
    size_t n = strcspn(l->text, "\n");
    if ((t->is_inside || t->exception[0]) && rank != t->rank)
        return;
    if (strncmp(l->text, head, sizeof head - 1) == 0) {
        t->is_inside = true;
        t->rank = rank;
        if (!t->has_cause)
            t->next_at[0] = '\0';
        t->has_cause = false;
    } else if (t->exception[0] && pyframe_is_workers(l->text)) {
        t->is_inside = true;
    } else if (t->exception[0] && strncmp(l->text, cause, sizeof cause - 1) == 0) {
        t->has_cause = true;
    } else if (t->is_inside && n > 0 && l->text[0] == ' ') {
        on_frame(t, dir, l->text);
    } else if (t->is_inside && n > 0) {
        snprintf(t->exception, sizeof t->exception, "%.*s", (int)n, l->text);
        memcpy(t->at, t->next_at, sizeof t->at);
        t->is_inside = false;
    }
}
