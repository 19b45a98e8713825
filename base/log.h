/* The log of a daemon or a harness: one line a record on stderr, in the form that log viewers
 * split: "2026-01-02T03:04:05.678901Z INFO master: listening on 127.0.0.1:8080". Only edges log;
 * libraries return errors. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level { LOG_TRACE, LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, LOG_CRITICAL };

void log_init(const char *program, enum log_level min);
/* A harness prints "INFO: det: text" as the log shipper expects; a daemon the line above. */
void log_set_task_format(void);
void log_at(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int log_level_parse(const char *name, enum log_level *ret); /* "debug"..; 0 or DET_EINVAL */
#define log_debug(...)   log_at(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)    log_at(LOG_INFO, __VA_ARGS__)
#define log_warning(...) log_at(LOG_WARNING, __VA_ARGS__)
#define log_error(...)   log_at(LOG_ERROR, __VA_ARGS__)

#endif
