#include "reason.h"

#include "agentlink.h"
#include "buf.h"
#include "uuid.h"
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

/* What follows a task's working directory, which an agent calls as its allocation
 * (LINK_WORK_DIR); NULL: the path is of no task. */
static const char *below_work(const char *path)
{
    static const char dir[] = "/" LINK_WORK_DIR "/";
    for (const char *p = path; (p = strstr(p, dir)) != NULL; p++) {
        const char *name = p;
        while (name > path && name[-1] != '/')
            name--;
        int exp, run, n = 0;
        char uuid[UUID_STR_MAX];
        if (sscanf(name, "%d.%36[0-9a-f-].%d/%n", &exp, uuid, &run, &n) == 3 && name + n == p + 1 &&
            uuid_is_valid(uuid))
            return p + strlen(dir);
    }
    return NULL;
}

/* The path as it was submitted; NULL: a library's. */
static const char *users_file(const char *path)
{
    static const char *const libraries[] = {"/lib/python3", "-packages/", "/python/determined/", "<"};
    const char *submitted = below_work(path);
    for (size_t i = 0; !submitted && i < DET_ARRAY_LEN(libraries); i++)
        if (strstr(path, libraries[i]))
            return NULL;
    return submitted ? submitted : path;
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
