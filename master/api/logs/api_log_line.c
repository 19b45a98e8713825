/* One log line as the API shows it; `message` is what the CLI prints as it is. */
#include "api_logs.h"
#include "api_util.h"
#include "clk.h"
#include <string.h>

static void put_text(struct buf *out, const char *key, const struct db_result *r, int row, int col)
{
    if (db_is_null(r, row, col))
        return;
    buf_addf(out, ",\"%s\":", key);
    json_write_string(out, db_text(r, row, col), db_text_len(r, row, col));
}

/* "[<time>] <container> [rank=<n>] || <LEVEL>: <log>" */
static void write_message(struct buf *out, const struct db_result *r, int row, const char *time,
                          const char *level)
{
    size_t id = db_text_len(r, row, LOG_COL_CONTAINER), shown = id < 8 ? id : 8;
    buf_addf(out, "[%s] ", time);
    buf_add(out, db_text(r, row, LOG_COL_CONTAINER), shown);
    buf_add(out, "        ", 8 - shown);
    if (!db_is_null(r, row, LOG_COL_RANK))
        buf_addf(out, " [rank=%s]", db_text(r, row, LOG_COL_RANK));
    buf_add_str(out, " || ");
    if (level)
        buf_addf(out, "%s: ", level);
}

/* With microseconds, also where they are 0. */
static void time_text(int64_t us, char out[CLK_RFC3339_MAX])
{
    clk_format(us, out);
    if (!strchr(out, '.'))
        memcpy(out + strcspn(out, "Z"), ".000000Z", sizeof ".000000Z");
}

void log_line_write(struct buf *out, const struct db_result *r, int row, int64_t trial_id)
{
    static const char prefix[] = "LOG_LEVEL_";
    char time[CLK_RFC3339_MAX];
    int number = (int)db_i64(r, row, LOG_COL_LEVEL);
    const char *name = wire_name_of(wire_log_level, number);
    const char *level = number && *name ? name + strlen(prefix) : NULL;
    const char *log = db_text(r, row, LOG_COL_TEXT);
    size_t n = db_text_len(r, row, LOG_COL_TEXT);
    struct buf text = BUF_INIT;
    time_text(db_i64(r, row, LOG_COL_TIME), time);
    write_message(&text, r, row, time, level);
    size_t head = text.len;
    buf_add(&text, log, n);
    if (n == 0 || log[n - 1] != '\n')
        buf_add_ch(&text, '\n');
    buf_addf(out, "{\"id\":\"%s\",\"timestamp\":\"%s\",\"level\":\"%s%s\",\"log\":",
             db_text(r, row, LOG_COL_ID), time, prefix, level ? level : "UNSPECIFIED");
    json_write_string(out, text.p + head, text.len - head);
    buf_add_str(out, ",\"message\":");
    json_write_string(out, text.p, text.len);
    buf_finish(&text);
    put_text(out, "agentId", r, row, LOG_COL_AGENT);
    put_text(out, "containerId", r, row, LOG_COL_CONTAINER);
    if (!db_is_null(r, row, LOG_COL_RANK))
        buf_addf(out, ",\"rankId\":%s", db_text(r, row, LOG_COL_RANK));
    put_text(out, "source", r, row, LOG_COL_SOURCE);
    put_text(out, "stdtype", r, row, LOG_COL_STDTYPE);
    if (trial_id > 0) {
        buf_addf(out, ",\"trialId\":%lld", (long long)trial_id);
    } else {
        put_text(out, "taskId", r, row, LOG_COL_TASK);
        put_text(out, "allocationId", r, row, LOG_COL_ALLOCATION);
    }
    buf_add_ch(out, '}');
}
