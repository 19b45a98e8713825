#include "runports.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[RUNPORTS_N] = {
    "C10D_PORT",
    "DTRAIN_SSH_PORT",
    "INTER_TRAIN_PROCESS_COMM_PORT_1",
    "INTER_TRAIN_PROCESS_COMM_PORT_2",
};

const char *runports_name(size_t i)
{
    return names[i];
}

void runports_write(struct buf *out, const struct runports *p)
{
    const char *between = "";
    for (size_t i = 0; i < RUNPORTS_N; i++) {
        if (p->port[i] <= 0)
            continue;
        buf_addf(out, "%s%s:%d", between, names[i], p->port[i]);
        between = ",";
    }
}

/* "NAME:41003" of n bytes. */
static int read_port(struct runports *ret, const char *at, size_t n)
{
    const char *colon = memchr(at, ':', n);
    size_t name_n = colon ? (size_t)(colon - at) : 0;
    char *end = NULL;
    long port = name_n && colon[1] >= '1' && colon[1] <= '9' ? strtol(colon + 1, &end, 10) : 0;
    if (port <= 0 || port > UINT16_MAX || end != at + n)
        return DET_EINVAL;
    for (size_t i = 0; i < RUNPORTS_N; i++)
        if (strncmp(names[i], at, name_n) == 0 && !names[i][name_n])
            ret->port[i] = (int)port;
    return 0;
}

int runports_read(struct runports *ret, const char *text, struct det_err *err)
{
    *ret = (struct runports){0};
    if (!text)
        return 0;
    size_t len = strnlen(text, RUNPORTS_STR_MAX + 1);
    int rc = len > RUNPORTS_STR_MAX ? DET_EINVAL : 0;
    for (const char *at = text; rc == 0;) {
        size_t n = strcspn(at, ",");
        rc = read_port(ret, at, n);
        if (!at[n])
            break;
        at += n + 1;
    }
    if (rc < 0)
        *ret = (struct runports){0};
    return rc < 0 ? det_fail(err, rc, "ports: not NAME:PORT,... with ports of 1 to 65535") : 0;
}
