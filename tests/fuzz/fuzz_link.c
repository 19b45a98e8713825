/* Both directions of the agent link, from the same bytes; what decodes must encode and decode
 * again. */
#include "agentlink.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void events(const char *text, size_t len)
{
    struct link_events e, again;
    if (link_events_decode(text, len, &e, NULL) < 0)
        return;
    json_t *array = json_array();
    for (size_t i = 0; i < e.n; i++)
        json_array_append_new(array, link_event_json(&e.v[i]));
    JSON_OWN j = link_events_json(e.boot, array, NULL);
    det_cleanup(freep) char *out = json_text(j);
    if (link_events_decode(out, strlen(out), &again, NULL) == 0) {
        if (again.n != e.n)
            abort();
        link_events_finish(&again);
    } else if (strlen(out) < LINK_BODY_MAX / 2) {
        abort();
    }
    link_events_finish(&e);
}

static void write_order(struct buf *out, const struct link_order *o)
{
    if (o->kind == LINK_START) {
        det_cleanup(freep) char *task = json_text(o->task);
        link_start_write(out, o, task);
        return;
    }
    JSON_OWN j = link_order_json(o);
    json_write(out, j);
}

static void order(const char *text, size_t len)
{
    struct link_order o, again;
    if (link_order_decode(text, len, &o, NULL) < 0)
        return;
    if (o.kind != LINK_ORDER_UNKNOWN) {
        det_cleanup(buf_finish) struct buf out = BUF_INIT;
        write_order(&out, &o);
        if (link_order_decode(buf_str(&out), out.len, &again, NULL) < 0 || again.kind != o.kind)
            abort();
        link_order_finish(&again);
    }
    link_order_finish(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct link_ack ack;
    events((const char *)data, size);
    order((const char *)data, size);
    if (link_ack_decode((const char *)data, size, &ack, NULL) == 0)
        link_ack_finish(&ack);
    return 0;
}
