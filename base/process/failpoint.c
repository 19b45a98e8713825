#include "failpoint.h"

#include "det/err.h"
#include "mem.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { POINTS_MAX = 32, NAME_MAX_LEN = 64 };
enum action { ACT_CRASH, ACT_ERROR, ACT_DELAY };

struct point {
    char name[NAME_MAX_LEN];
    enum action action;
    long ms, nth; /* nth 0: every pass */
    atomic_long passes;
};

static struct point points[POINTS_MAX];
static size_t points_n;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void refuse_text(const char *text)
{
    fprintf(stderr, "DET_FAILPOINTS: '%s' is not NAME=crash|error|delay:MS[@N]\n", text);
    exit(2);
}

static const char *take_number(const char *s, long *ret)
{
    char *end;
    *ret = strtol(s, &end, 10);
    return end == s || *ret < 0 ? NULL : end;
}

static const char *parse_action(const char *s, struct point *p)
{
    if (!strncmp(s, "crash", 5)) {
        p->action = ACT_CRASH;
        return s + 5;
    }
    if (!strncmp(s, "error", 5)) {
        p->action = ACT_ERROR;
        return s + 5;
    }
    p->action = ACT_DELAY;
    return strncmp(s, "delay:", 6) ? NULL : take_number(s + 6, &p->ms);
}

static void parse_one(const char *text)
{
    struct point *p = &points[points_n];
    size_t n = strcspn(text, "=");
    if (points_n == POINTS_MAX || n == 0 || n >= NAME_MAX_LEN || !text[n])
        refuse_text(text);
    memcpy(p->name, text, n);
    const char *s = parse_action(text + n + 1, p);
    if (s && *s == '@')
        s = take_number(s + 1, &p->nth);
    if (!s || *s)
        refuse_text(text);
    points_n++;
}

static void parse_all(void)
{
    const char *env = getenv("DET_FAILPOINTS");
    char *copy = det_strdup(env ? env : ""), *rest = copy, *one;
    while ((one = strsep(&rest, ",")))
        if (*one)
            parse_one(one);
    free(copy);
}

static int act_on_point(const struct point *p)
{
    struct timespec t = {p->ms / 1000, p->ms % 1000 * 1000000};
    switch (p->action) {
    case ACT_CRASH: kill(getpid(), SIGKILL); return 0;
    case ACT_ERROR: return DET_EIO;
    case ACT_DELAY: nanosleep(&t, NULL); return 0;
    }
    return 0;
}

int failpoint_pass(const char *name)
{
    pthread_once(&once, parse_all);
    for (size_t i = 0; i < points_n; i++) {
        struct point *p = &points[i];
        if (strcmp(p->name, name))
            continue;
        long pass = atomic_fetch_add(&p->passes, 1) + 1;
        return p->nth && pass != p->nth ? 0 : act_on_point(p);
    }
    return 0;
}
