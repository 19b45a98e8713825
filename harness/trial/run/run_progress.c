#include "run_progress.h"

#include "buf.h"
#include "clk.h"
#include "mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DRAW_MS   100
#define BAR_CELLS 24

/* ---- the bar ---- */

static size_t terminal_width(void)
{
    struct winsize w;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 20 ? w.ws_col : 80;
}

/* Batches of the whole run; 0: not known. */
static int64_t total_batches(const struct loop *l)
{
    const struct det_loop_config *c = loop_config(l);
    switch (c->test_mode ? LOOP_LEN_BATCHES : c->length_unit) {
    case LOOP_LEN_RECORDS: return c->max_length / c->global_batch_size;
    case LOOP_LEN_EPOCHS: return c->max_length * loop_epoch_len(l);
    case LOOP_LEN_BATCHES: break;
    }
    return c->test_mode ? 1 : c->max_length;
}

static void add_bar(struct buf *b, int64_t done, int64_t total)
{
    int cells = total > 0 ? (int)(done * BAR_CELLS / total) : 0;
    buf_add_ch(b, '[');
    for (int i = 0; i < BAR_CELLS; i++)
        buf_add_ch(b, i < cells ? '=' : i == cells ? '>' : ' ');
    buf_addf(b, "] %" PRId64 "/%" PRId64, done, total);
}

static void add_speed(struct buf *b, const struct run_progress *p, int64_t done, int64_t total)
{
    double s = (double)(p->drawn_ms - p->began_ms) / 1000, n = (double)(done - p->began_batches);
    if (s <= 0 || n <= 0)
        return;
    int64_t left = (int64_t)((double)(total - done) * s / n);
    buf_addf(b, "  %.4g batches/s", n / s);
    if (left >= 0)
        buf_addf(b, "  %" PRId64 ":%02d left", left / 60, (int)(left % 60));
}

static void add_metrics(struct buf *b, const struct loop_metrics *m)
{
    for (size_t i = 0; i < m->n; i++) {
        double v;
        if (loop_metric_scalar(&m->v[i], &v))
            buf_addf(b, "  %s %.6g", m->v[i].name, v);
    }
}

/* The bar is drawn again after DRAW_MS; batches in between are not waited for. */
static bool begin_drawing(void *self, const struct loop *l)
{
    struct run_progress *p = self;
    int64_t now_ms = clk_mono_ms();
    if (p->began_batches < 0) {
        p->began_batches = loop_batches_trained(l);
        p->began_ms = now_ms;
    }
    if (now_ms - p->drawn_ms < DRAW_MS)
        return false;
    p->drawn_ms = now_ms;
    return true;
}

static void on_batch(void *self, const struct loop *l, const struct loop_metrics *m)
{
    struct run_progress *p = self;
    int64_t done = loop_batches_trained(l), total = total_batches(l);
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    add_bar(&b, done, total);
    add_speed(&b, p, done, total);
    add_metrics(&b, m);
    printf("\r\033[K%.*s", (int)terminal_width() - 1, buf_str(&b));
    fflush(stdout);
}

void run_progress_clear(struct run_progress *p)
{
    if (!p->bar || p->drawn_ms == 0)
        return;
    printf("\r\033[K");
    p->drawn_ms = 0;
    fflush(stdout);
}

/* ---- the lines ---- */

static void print_metrics(struct run_progress *p, const char *what, int64_t steps,
                          const struct loop_metrics *m)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    add_metrics(&b, m);
    run_progress_clear(p);
    printf("%s %" PRId64 "%s\n", what, steps, buf_str(&b));
    fflush(stdout);
}

static void on_training(void *self, int64_t steps, const struct loop_metrics *avg)
{
    print_metrics(self, "batches", steps, avg);
}

static void on_validation(void *self, int64_t steps, const struct loop_metrics *metrics)
{
    print_metrics(self, "validation", steps, metrics);
}

static void note_checkpoint(void *self, int64_t steps, const char *uuid)
{
    struct run_progress *p = self;
    free(p->checkpoint);
    p->checkpoint = det_strdup(uuid);
    p->checkpoint_steps = steps;
}

static void on_checkpoint(void *self, int64_t steps, const char *uuid)
{
    note_checkpoint(self, steps, uuid);
    run_progress_clear(self);
    printf("checkpoint %" PRId64 "  %s\n", steps, uuid);
    fflush(stdout);
}

struct loop_observer run_progress_observer(struct run_progress *p, bool quiet)
{
    free(p->checkpoint);
    *p = (struct run_progress){.bar = !quiet && isatty(STDOUT_FILENO), .began_batches = -1};
    if (quiet)
        return (struct loop_observer){.self = p, .checkpoint = note_checkpoint};
    return (struct loop_observer){.self = p,
                                  .training = on_training,
                                  .validation = on_validation,
                                  .checkpoint = on_checkpoint,
                                  .wants_batch = begin_drawing,
                                  .batch = p->bar ? on_batch : NULL};
}

void run_progress_finish(struct run_progress *p)
{
    run_progress_clear(p);
    free(p->checkpoint);
    p->checkpoint = NULL;
}
