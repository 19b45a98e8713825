#include "logline.h"

#include <ctype.h>
#include <string.h>

static const char *const level_names[LOGLINE_LEVEL_COUNT] = {
    "LOG_LEVEL_UNSPECIFIED", "LOG_LEVEL_TRACE", "LOG_LEVEL_DEBUG",   "LOG_LEVEL_INFO",
    "LOG_LEVEL_WARNING",     "LOG_LEVEL_ERROR", "LOG_LEVEL_CRITICAL"};

const char *logline_level_name(enum logline_level l)
{
    return level_names[l < LOGLINE_LEVEL_COUNT ? l : 0];
}

static bool starts_with(const char *p, size_t n, const char *word)
{
    size_t len = strlen(word);
    return n >= len && memcmp(p, word, len) == 0;
}

/* "[rank=N]" after optional blanks, and one blank behind it. */
static void take_rank(struct logline *l)
{
    size_t i = 0;
    int rank = 0;
    while (i < l->len && (l->text[i] == ' ' || l->text[i] == '\t'))
        i++;
    if (!starts_with(l->text + i, l->len - i, "[rank="))
        return;
    size_t digits = i += strlen("[rank=");
    for (; i < l->len && isdigit((unsigned char)l->text[i]) && i - digits < 7; i++)
        rank = rank * 10 + l->text[i] - '0';
    if (i == digits || i >= l->len || l->text[i] != ']')
        return;
    i++;
    i += i < l->len && l->text[i] == ' ';
    l->rank = rank;
    l->text += i;
    l->len -= i;
}

static void take_level(struct logline *l)
{
    static const char *const words[] = {
        "", "TRACE:", "DEBUG:", "INFO:", "WARNING:", "ERROR:", "CRITICAL:"};
    for (int i = 1; i < LOGLINE_LEVEL_COUNT; i++) {
        if (!starts_with(l->text, l->len, words[i]))
            continue;
        size_t n = strlen(words[i]);
        n += n < l->len && l->text[n] == ' ';
        l->level = (enum logline_level)i;
        l->text += n;
        l->len -= n;
        return;
    }
}

struct logline logline_parse(const char *text, size_t len)
{
    struct logline l = {.text = text, .len = len, .rank = -1};
    take_rank(&l);
    take_level(&l);
    return l;
}

static void emit_line(struct logline_split *s, logline_fn *fn, void *arg)
{
    s->buf[s->n++] = '\n';
    struct logline l = logline_parse(s->buf, s->n);
    fn(arg, &l);
    s->n = 0;
}

void logline_feed(struct logline_split *s, const char *p, size_t n, logline_fn *fn, void *arg)
{
    for (size_t i = 0; i < n; i++) {
        bool joined = s->after_cr && p[i] == '\n';
        s->after_cr = p[i] == '\r';
        if (joined)
            continue;
        if (p[i] == '\n' || p[i] == '\r') {
            emit_line(s, fn, arg);
            continue;
        }
        s->buf[s->n++] = p[i];
        if (s->n == LOGLINE_MAX - 1)
            emit_line(s, fn, arg);
    }
}

void logline_flush(struct logline_split *s, logline_fn *fn, void *arg)
{
    if (s->n > 0)
        emit_line(s, fn, arg);
    s->after_cr = false;
}
