/* A recording as Chrome trace JSON. */
#include "profile.h"

#include "json.h"
#include <inttypes.h>

/* TensorBoard's PyTorch profiler groups by these. */
static const char *const categories[SPAN_CAT_COUNT] = {[SPAN_STEP] = "user_annotation",
                                                       [SPAN_LOOP] = "user_annotation",
                                                       [SPAN_OP] = "cpu_op",
                                                       [SPAN_DATA] = "user_annotation",
                                                       [SPAN_COMM] = "user_annotation"};

static void add_text(struct buf *out, const char *text)
{
    JSON_OWN j = json_lossy(text, strlen(text));
    det_cleanup(freep) char *quoted = json_text(j);
    buf_add_str(out, quoted);
}

/* Nanoseconds as microseconds, exactly. */
static void add_us(struct buf *out, const char *key, int64_t ns)
{
    buf_addf(out, ",\"%s\":%" PRId64 ".%03d", key, ns / 1000, (int)(ns % 1000));
}

static void add_span(struct buf *out, const struct profile *p, const struct profile_event *e,
                     int pid)
{
    const char *detail = profile_text(p, e->detail);
    buf_addf(out, "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":", categories[e->cat]);
    add_text(out, profile_text(p, e->name));
    buf_addf(out, ",\"pid\":%d,\"tid\":%d", pid, e->tid);
    add_us(out, "ts", e->start_ns);
    add_us(out, "dur", e->end_ns - e->start_ns);
    buf_add_str(out, ",\"args\":{");
    if (detail) {
        buf_add_str(out, "\"detail\":");
        add_text(out, detail);
    }
    buf_add_str(out, "}}");
}

static void add_count(struct buf *out, const struct profile *p, const struct profile_event *e,
                      int pid)
{
    buf_add_str(out, "{\"ph\":\"C\",\"name\":");
    add_text(out, profile_text(p, e->name));
    buf_addf(out, ",\"pid\":%d,\"tid\":0", pid);
    add_us(out, "ts", e->start_ns);
    buf_addf(out, ",\"args\":{\"bytes\":%" PRId64 "}}", e->value);
}

void profile_write_trace(struct profile *p, const char *process, int pid, struct buf *out)
{
    profile_sort(p);
    buf_addf(out,
             "{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"truncated\":%s,"
             "\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"tid\":0,"
             "\"ts\":0,\"args\":{\"name\":",
             p->full ? "true" : "false", pid);
    add_text(out, process);
    buf_add_str(out, "}}");
    for (size_t i = 0; i < p->events.n; i++) {
        buf_add_str(out, ",\n");
        (p->events.v[i].count ? add_count : add_span)(out, p, &p->events.v[i], pid);
    }
    buf_add_str(out, "\n]}\n");
}
