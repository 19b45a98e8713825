#include "log.h"

#include "buf.h"
#include "clk.h"
#include "det/err.h"
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static const char *const level_names[] = {"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"};

static const char *log_program = "det";
static enum log_level log_min = LOG_INFO;
static bool log_as_task;

void log_init(const char *program, enum log_level min)
{
    log_program = program;
    log_min = min;
}

void log_set_task_format(void)
{
    log_as_task = true;
}

/* A record is one line: what would break it becomes a space. */
static void blank_control(struct buf *line, size_t from)
{
    for (size_t i = from; i < line->len; i++) {
        unsigned char c = (unsigned char)line->p[i];
        if (c < 0x20 && c != '\t')
            line->p[i] = ' ';
    }
}

static void write_all(const char *p, size_t n)
{
    while (n) {
        ssize_t done = write(STDERR_FILENO, p, n);
        if (done <= 0)
            return; /* there is nowhere left to complain */
        p += done;
        n -= (size_t)done;
    }
}

void log_at(enum log_level level, const char *fmt, ...)
{
    if (level < log_min)
        return;
    struct buf line = BUF_INIT;
    if (log_as_task) {
        buf_addf(&line, "%s: det: ", level_names[level]);
    } else {
        char now[CLK_RFC3339_MAX];
        clk_format(clk_wall_us(), now);
        buf_addf(&line, "%s %s %s: ", now, level_names[level], log_program);
    }
    size_t from = line.len;
    va_list ap;
    va_start(ap, fmt);
    buf_vaddf(&line, fmt, ap);
    va_end(ap);
    blank_control(&line, from);
    buf_add_ch(&line, '\n');
    write_all(line.p, line.len);
    buf_finish(&line);
}

int log_level_parse(const char *name, enum log_level *ret)
{
    for (int i = LOG_TRACE; i <= LOG_CRITICAL; i++)
        if (strcasecmp(name, level_names[i]) == 0) {
            *ret = (enum log_level)i;
            return 0;
        }
    if (strcasecmp(name, "warn") == 0) {
        *ret = LOG_WARNING;
        return 0;
    }
    return DET_EINVAL;
}
