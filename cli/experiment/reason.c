#include "reason.h"

#include "buf.h"
#include <stdio.h>
#include <string.h>

/* What is found on the way; the lines are borrowed. */
struct found {
    const char *exception, *error, *ended; /* of Python; of another program; of the run */
    char place[512];                       /* of the exception, in the user's own code */
    bool inside;                           /* a traceback */
    int64_t rank;                          /* whose */
};

static const char *text_of(const json_t *line)
{
    return json_str(line, "log", json_str(line, "message", ""));
}

/* The path as it was submitted; NULL: a library's. */
static const char *users_file(const char *path)
{
    static const char *const libraries[] = {"/lib/python3", "-packages/", "/python/determined/", "<"};
    for (size_t i = 0; i < DET_ARRAY_LEN(libraries); i++)
        if (strstr(path, libraries[i]))
            return NULL;
    const char *work = strstr(path, "/work/"), *next;
    while (work && (next = strstr(work + 1, "/work/")))
        work = next;
    return work ? work + strlen("/work/") : path;
}

static void on_traceback(struct found *f, const char *text)
{
    char path[256], function[128];
    int at;
    if (sscanf(text, " File \"%255[^\"]\", line %d, in %127[^\n]", path, &at, function) == 3) {
        const char *file = users_file(path);
        if (file)
            snprintf(f->place, sizeof f->place, "%s, line %d, in %s", file, at, function);
    } else if (*text != ' ' && *text != '\n' && *text) {
        f->exception = text;
        f->inside = false;
    }
}

static void on_line(struct found *f, const json_t *line)
{
    const char *text = text_of(line);
    int64_t rank = json_int(line, "rankId", -1);
    bool is_error = strstr(json_str(line, "level", ""), "ERROR") != NULL;
    if (strncmp(text, "Traceback (most recent call last)", 33) == 0) {
        f->inside = true;
        f->rank = rank;
        f->place[0] = '\0';
    } else if (f->inside && rank == f->rank) {
        on_traceback(f, text);
    } else if (strncmp(text, "Run ", 4) == 0 && strstr(text, " ended: ")) {
        f->ended = strstr(text, " ended: ") + strlen(" ended: ");
    } else if (strstr(text, ": error: ") || (is_error && rank >= 0)) {
        f->error = text;
    }
}

char *reason_of(const json_t *lines)
{
    struct found f = {.rank = -1};
    size_t i;
    json_t *line;
    json_array_foreach((json_t *)lines, i, line) on_line(&f, line);
    const char *said = f.exception ? f.exception : f.error ? f.error : f.ended;
    if (!said)
        return NULL;
    int n = (int)strcspn(said, "\n");
    bool placed = f.exception && f.place[0];
    return placed ? det_asprintf("%.*s (%s)", n, said, f.place) : det_asprintf("%.*s", n, said);
}
