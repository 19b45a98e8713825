/*
 * The log of a daemon or a harness, one line a record on stderr. Of a daemon as text that log
 * viewers split ("2026-01-02T03:04:05.678901Z INFO master: agent is connected agent=a1") or as one
 * JSON object ({"time":..,"level":..,"program":..,"component":..,"message":..} and the fields).
 * The component is the source file's name. Only edges log; libraries return errors. One thread.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdint.h>

enum log_level { LOG_TRACE, LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, LOG_CRITICAL };
enum log_format { LOG_TEXT, LOG_JSON };

void log_init(const char *program, enum log_level min);
void log_set_format(enum log_format format);
/* A harness prints "INFO: det: text" as the log shipper expects; a daemon the line above. */
void log_set_task_format(void);

/* One record, for somebody besides stderr. Borrowed. */
struct log_record {
    enum log_level level;
    int64_t wall_us;
    const char *text; /* without newline; with its fields as " key=value" */
};
/* Every record goes to fn too (NULL: no longer). fn must not log. */
void log_set_sink(void (*fn)(void *arg, const struct log_record *r), void *arg);

/* LOG_FIELDS("agent", id, "allocation", alloc): what a record is about. A NULL value is left out.
 */
#define LOG_FIELDS(...) ((const char *const[]){__VA_ARGS__, NULL})

void log_line(const char *file, enum log_level level, const char *const *fields, const char *fmt,
              ...) __attribute__((format(printf, 4, 5)));
int log_level_parse(const char *name, enum log_level *ret); /* "debug"..; 0 or DET_EINVAL */
#define log_at(level, ...)           log_line(__FILE__, level, NULL, __VA_ARGS__)
#define log_with(level, fields, ...) log_line(__FILE__, level, fields, __VA_ARGS__)
#define log_debug(...)               log_at(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)                log_at(LOG_INFO, __VA_ARGS__)
#define log_warning(...)             log_at(LOG_WARNING, __VA_ARGS__)
#define log_error(...)               log_at(LOG_ERROR, __VA_ARGS__)

#endif
