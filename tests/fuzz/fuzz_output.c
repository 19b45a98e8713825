/*
 * What a task's processes print. However the bytes come in pieces, they are the same lines, each
 * whole and within its bounds; and whatever the lines look like, what is looked for in them
 * (exceptions, stacks, paths that the task does not see) is told in whole, bounded texts.
 */
#include "buf.h"
#include "logline.h"
#include "mem.h"
#include "pystacks.h"
#include "stackfold.h"
#include "traceback.h"
#include "unseen.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char dir[] = "/work/t";

struct seen {
    struct buf lines;
    struct traceback traceback;
    struct pystacks *stacks;
    struct stackfold *fold;
    size_t kept;
};

static void require(bool ok)
{
    if (!ok)
        abort();
}

static void check_line(const struct logline *l)
{
    require(l->len > 0 && l->len <= LOGLINE_MAX && l->text[l->len - 1] == '\n');
    require(!memchr(l->text, '\n', l->len - 1) && !memchr(l->text, '\r', l->len));
    require(l->rank >= -1 && l->level >= 0 && l->level < LOGLINE_LEVEL_COUNT);
}

static void note_line(void *arg, const struct logline *l)
{
    struct buf *out = arg;
    check_line(l);
    buf_addf(out, "%d %d ", l->rank, (int)l->level);
    buf_add(out, l->text, l->len);
}

/* The searches take the line as the log has it: up to its first zero byte where they want text. */
static void look_at_line(void *arg, const struct logline *l)
{
    static const struct unseen u = {.has_own_tmp = true, .user = "u", .uid = 5};
    struct seen *s = arg;
    struct buf why = BUF_INIT;
    det_cleanup(freep) char *text = det_zalloc(l->len + 1);
    memcpy(text, l->text, l->len);
    note_line(&s->lines, l);
    traceback_line(&s->traceback, dir, l->rank, l);
    s->kept += pystacks_line(s->stacks, dir, l);
    stackfold_add(s->fold, text);
    require(unseen_explain(&u, text, &why) == (why.len > 0));
    buf_finish(&why);
}

static void check_text(void *arg, const char *text)
{
    require(*text);
}

static bool is_every(void *arg, const char *file)
{
    (void)arg;
    return *file;
}

static void check_folded(void *arg, const char *line)
{
    size_t n = strlen(line);
    require(n > 0 && strchr(line, '\n') == line + n - 1);
}

static void check_kept(void *arg, const struct logline *l)
{
    require(l->len > 0);
}

static void end_searches(struct seen *s)
{
    require(memchr(s->traceback.exception, 0, sizeof s->traceback.exception));
    require(memchr(s->traceback.at, 0, sizeof s->traceback.at));
    require(pystacks_kept(s->stacks) <= s->kept);
    pystacks_end(s->stacks, check_text, check_kept, NULL);
    const char *place = stackfold_place(s->fold);
    require(!place || strstr(place, ", line "));
    stackfold_end(s->fold, check_folded, NULL);
    pystacks_destroy(s->stacks);
    stackfold_destroy(s->fold);
}

/* In pieces of one size; 0: at once. */
static void split(const char *p, size_t size, size_t piece, logline_fn *fn, void *arg)
{
    struct logline_split s = LOGLINE_SPLIT_INIT;
    for (size_t at = 0, n; at < size; at += n) {
        n = piece && piece < size - at ? piece : size - at;
        logline_feed(&s, p + at, n, fn, arg);
    }
    logline_flush(&s, fn, arg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    struct seen s = {.stacks = pystacks_create(), .fold = stackfold_create(is_every, NULL)};
    split(p, size, 0, look_at_line, &s);
    for (size_t piece = 1; piece <= 7; piece += 3) {
        struct buf again = BUF_INIT;
        split(p, size, piece, note_line, &again);
        require(again.len == s.lines.len && !memcmp(buf_str(&again), buf_str(&s.lines), again.len));
        buf_finish(&again);
    }
    end_searches(&s);
    buf_finish(&s.lines);
    return 0;
}
