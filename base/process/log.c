#include "log.h"

#include "buf.h"
#include "clk.h"
#include "det/err.h"
#include "json.h"
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static const char *const level_names[] = {"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"};

static const char *log_program = "det";
static enum log_level log_min = LOG_INFO;
static enum log_format log_form = LOG_TEXT;
static bool log_as_task;
static void (*log_sink)(void *arg, const struct log_record *r);
static void *log_sink_arg;

void log_init(const char *program, enum log_level min)
{
    log_program = program;
    log_min = min;
}

void log_set_format(enum log_format format)
{
    log_form = format;
}

void log_set_task_format(void)
{
    log_as_task = true;
}

void log_set_sink(void (*fn)(void *arg, const struct log_record *r), void *arg)
{
    log_sink = fn;
    log_sink_arg = arg;
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

/* "agents" of "../master/shell/agents.c". */
static json_t *component_of_file(const char *file)
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    return json_stringn(name, strcspn(name, "."));
}

static void add_json(struct buf *out, const char *file, const struct log_record *r, size_t text_len,
                     const char *const *fields)
{
    char now[CLK_RFC3339_MAX];
    clk_format(r->wall_us, now);
    JSON_OWN j = json_object();
    json_set(j, "time", json_string(now));
    json_set(j, "level", json_string(level_names[r->level]));
    json_set(j, "program", json_string(log_program));
    json_set(j, "component", component_of_file(file));
    json_set(j, "message", json_lossy(r->text, text_len));
    for (; fields && fields[0]; fields += 2)
        if (fields[1])
            json_set(j, fields[0], json_lossy(fields[1], strlen(fields[1])));
    json_write(out, j);
}

static void add_text(struct buf *out, const struct log_record *r)
{
    char now[CLK_RFC3339_MAX];
    clk_format(r->wall_us, now);
    if (log_as_task)
        buf_addf(out, "%s: det: %s", level_names[r->level], r->text);
    else
        buf_addf(out, "%s %s %s: %s", now, level_names[r->level], log_program, r->text);
}

void log_line(const char *file, enum log_level level, const char *const *fields, const char *fmt,
              ...)
{
    if (level < log_min)
        return;
    struct buf text = BUF_INIT, line = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    size_t text_len = text.len;
    for (const char *const *f = fields; f && f[0]; f += 2)
        if (f[1])
            buf_addf(&text, " %s=%s", f[0], f[1]);
    blank_control(&text, 0);
    struct log_record r = {level, clk_wall_us(), buf_str(&text)};
    if (log_form == LOG_JSON && !log_as_task)
        add_json(&line, file, &r, text_len, fields);
    else
        add_text(&line, &r);
    buf_add_ch(&line, '\n');
    write_all(line.p, line.len);
    if (log_sink)
        log_sink(log_sink_arg, &r);
    buf_finish(&text);
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
