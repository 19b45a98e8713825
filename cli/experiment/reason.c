#include "reason.h"

#include "agentlink.h"
#include "buf.h"
#include "pyframe.h"
#include "uuid.h"
#include <stdio.h>
#include <string.h>

#define PLACE_MAX 512

/* What is found on the way; the lines are borrowed. */
struct found {
    const char *exception, *error, *ended; /* of Python; of another program; of the run */
    const json_t *lines;
    size_t at, since;             /* this line; the first after the end of the run before */
    const char *nowhere;          /* no host can start it: the master's last word; NULL: it ran */
    const char *ended_by;         /* the last line on stderr of who ended the run; NULL: none */
    const char *last;             /* the line before */
    const char *because, *of;     /* what det-task said, and of which line; NULL: nothing */
    char place[PLACE_MAX];        /* of the exception, in the user's own code */
    bool inside;                  /* a traceback */
    bool has_cause;               /* the next one was raised from the one before */
    bool stalled;                 /* the place is where a rank stood still */
    int64_t rank;                 /* whose */
    int stalled_rank, place_rank; /* -1: none */
};

static const char of_above[] = "Of the line above: ";
static const char cause[] = "The above exception was the direct cause of the following exception:";

static const char *text_of(const json_t *line)
{
    return json_str(line, "log", json_str(line, "message", ""));
}

/* An agent calls a task's directory as its allocation: the task, the run, and of which master's
 * life it is. */
static bool is_allocation(const char *name, const char *end)
{
    int exp, run, n = 0;
    char uuid[UUID_STR_MAX];
    if (sscanf(name, "%d.%36[0-9a-f-].%d%n", &exp, uuid, &run, &n) != 3 || !uuid_is_valid(uuid))
        return false;
    name += n;
    if (*name == '.')
        name += 1 + strspn(name + 1, "0123456789abcdef");
    return name == end;
}

/* What follows a task's working directory (LINK_WORK_DIR); NULL: the path is of no task. */
static const char *below_work(const char *path)
{
    static const char dir[] = "/" LINK_WORK_DIR "/";
    for (const char *p = path; (p = strstr(p, dir)) != NULL; p++) {
        const char *name = p;
        while (name > path && name[-1] != '/')
            name--;
        if (is_allocation(name, p))
            return p + strlen(dir);
    }
    return NULL;
}

/* The path as it was submitted; NULL: a library's. */
static const char *users_file(const char *path)
{
    static const char *const libraries[] = {"/lib/python3", "-packages/", "/python/determined/",
                                            "<"};
    const char *submitted = below_work(path);
    for (size_t i = 0; !submitted && i < DET_ARRAY_LEN(libraries); i++)
        if (strstr(path, libraries[i]))
            return NULL;
    return submitted ? submitted : path;
}

static void on_traceback(struct found *f, const char *text)
{
    struct pyframe frame;
    const char *file = pyframe_read(text, &frame) ? users_file(frame.path) : NULL;
    if (file) {
        pyframe_write(&frame, file, f->place, PLACE_MAX);
    } else if (*text != ' ' && *text != '\n' && *text) {
        f->exception = text;
        f->inside = false;
    }
}

/* What a task says of a rank that was asked for its stack: of one that stalled before its end. -1:
 * of a process that is no rank's. NULL: it is no such line. */
static const char *place_in(const char *text, int *ret_rank)
{
    int n = 0;
    if (sscanf(text, "rank %d is at %n", ret_rank, &n) == 1 && n > 0)
        return text + n;
    *ret_rank = -1;
    return sscanf(text, "process %*d is at %n", &n) == 0 && n > 0 ? text + n : NULL;
}

/* The first of a stall: the main thread's. The rank that stalled goes before the others, who are
 * asked with it. */
static bool take_place(struct found *f, const char *text)
{
    int rank;
    const char *place = place_in(text, &rank);
    if (!place)
        return false;
    if (!f->place[0] || (rank >= 0 && rank == f->stalled_rank && rank != f->place_rank)) {
        snprintf(f->place, sizeof f->place, "%.*s", (int)strcspn(place, "\n"), place);
        f->place_rank = rank;
    }
    return true;
}

/* What was asked before it, or of the stall of another run, is not where it stood. */
static bool begin_stall(struct found *f, const char *text)
{
    int rank, n = 0;
    if (sscanf(text, "rank %d stalled: %n", &rank, &n) != 1 || n == 0)
        return false;
    f->place[0] = '\0';
    f->stalled_rank = rank;
    return true;
}

/* Whoever writes no Python and no such line of ours says on stderr why it ends. */
static bool is_own_word(const json_t *line, const char *text)
{
    const char *level = json_str(line, "level", "");
    bool is_told = strcmp(level, "LOG_LEVEL_UNSPECIFIED") == 0 || strstr(level, "ERROR");
    return is_told && strcmp(json_str(line, "stdtype", ""), "stderr") == 0 &&
           text[strspn(text, " \t\n")];
}

/* Another rank's last line is not why this one ended. */
static void read_end(struct found *f, const char *said)
{
    int who = -1;
    bool is_rank = sscanf(said, "rank %d ", &who) == 1;
    f->ended = said;
    f->ended_by = f->nowhere = NULL;
    for (size_t i = f->at; i > f->since && !f->ended_by; i--) {
        const json_t *line = json_array_get(f->lines, i - 1);
        bool is_whose = !is_rank || json_int(line, "rankId", who) == who;
        if (is_whose && is_own_word(line, text_of(line)))
            f->ended_by = text_of(line);
    }
    f->since = f->at + 1;
}

/* Which hosts, and why. Lines of a trial's own have a container's id. */
static const char *hosts_that_failed(const json_t *line, const char *text)
{
    static const char of_all[] = " cannot be started on any agent that could have it: ";
    const char *found = strncmp(text, "Trial ", 6) == 0 ? strstr(text, of_all) : NULL;
    return found && !*json_str(line, "containerId", "") ? found + sizeof of_all - 1 : NULL;
}

static void read_line(struct found *f, const json_t *line, const char *text)
{
    int64_t rank = json_int(line, "rankId", -1);
    bool is_error = strstr(json_str(line, "level", ""), "ERROR") != NULL;
    if (strncmp(text, "Traceback (most recent call last)", 33) == 0) {
        f->inside = true;
        f->rank = rank;
        if (!f->has_cause)
            f->place[0] = '\0';
        f->has_cause = false;
    } else if (f->exception && rank == f->rank && strncmp(text, cause, sizeof cause - 1) == 0) {
        f->has_cause = true;
    } else if (f->exception && rank == f->rank && pyframe_is_workers(text)) {
        f->inside = true;
    } else if (f->inside && rank == f->rank) {
        on_traceback(f, text);
    } else if (!f->exception && begin_stall(f, text)) {
        f->stalled = true;
    } else if (!f->exception && take_place(f, text)) {
        f->stalled = true;
    } else if (strncmp(text, "Run ", 4) == 0 && strstr(text, " ended: ")) {
        read_end(f, strstr(text, " ended: ") + strlen(" ended: "));
    } else if (hosts_that_failed(line, text)) {
        f->nowhere = hosts_that_failed(line, text);
    } else if (strstr(text, ": error: ") || (is_error && rank >= 0)) {
        f->error = text;
    }
}

/* What explains the reason stands right behind it. */
static void on_line(struct found *f, const json_t *line)
{
    const char *text = text_of(line);
    if (strncmp(text, of_above, sizeof of_above - 1) != 0) {
        read_line(f, line, text);
    } else if (f->last && (f->last == f->exception || f->last == f->error)) {
        f->because = text + sizeof of_above - 1;
        f->of = f->last;
    }
    f->last = text;
}

/* Of a program that ended itself; where the end has an explanation already, that is it. */
static void add_own_word(const struct found *f, const char *said, struct buf *out)
{
    if (said != f->ended || !f->ended_by || !strstr(said, " exited with code ") ||
        strchr(said, ';'))
        return;
    const char *own = f->ended_by + strspn(f->ended_by, " \t");
    buf_addf(out, "; its last line of error: %.*s", (int)strcspn(own, "\n"), own);
}

/* A line without its full stop. Caller frees. */
static char *cut_stop(const char *line)
{
    size_t n = strcspn(line, "\n");
    return det_strndup(line, n > 0 && line[n - 1] == '.' ? n - 1 : n);
}

char *reason_of(const json_t *lines)
{
    struct found f = {.rank = -1, .lines = lines, .stalled_rank = -1, .place_rank = -1};
    for (; f.at < json_array_size(lines); f.at++)
        on_line(&f, json_array_get(lines, f.at));
    const char *said = f.exception ? f.exception : f.error ? f.error : f.ended;
    if (f.nowhere)
        return cut_stop(f.nowhere);
    if (!said)
        return NULL;
    int n = (int)strcspn(said, "\n");
    bool is_stall = f.stalled && said == f.ended && strstr(said, " stalled: ");
    bool placed = f.place[0] && (f.exception || is_stall);
    struct buf out = BUF_INIT;
    buf_addf(&out, "%.*s", n, said);
    if (placed)
        buf_addf(&out, " (%s)", f.place);
    add_own_word(&f, said, &out);
    if (f.because && said == f.of)
        buf_addf(&out, ": %.*s", (int)strcspn(f.because, ".\n"), f.because);
    return buf_steal(&out);
}
