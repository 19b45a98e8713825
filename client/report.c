#include "report.h"

#include "mem.h"

#include <stdbool.h>
#include <string.h>

#define TRIALS "/api/v1/trials/"

static const struct call {
    const char *what;
    enum report_kind kind;
} calls[] = {
    {"metrics", REPORT_METRICS},
    {"progress", REPORT_PROGRESS},
    {"runner/metadata", REPORT_STATE},
};

enum report_kind report_kind(const char *method, const char *path)
{
    size_t n = strlen(TRIALS);
    if (strcmp(method, "POST") != 0 || strncmp(path, TRIALS, n) != 0)
        return REPORT_OTHER;
    size_t digits = strspn(path + n, "0123456789");
    if (digits == 0 || path[n + digits] != '/')
        return REPORT_OTHER;
    const char *what = path + n + digits + 1;
    for (size_t i = 0; i < DET_ARRAY_LEN(calls); i++)
        if (strcmp(what, calls[i].what) == 0)
            return calls[i].kind;
    return REPORT_OTHER;
}

enum report_answer report_answer(enum report_kind kind, int status)
{
    if (status >= 200 && status < 300)
        return REPORT_SENT;
    if (status == 0 || status == 408 || status == 429 || (status >= 502 && status <= 504))
        return REPORT_AGAIN;
    if (status >= 500)
        return REPORT_FAULT;
    bool informs = kind == REPORT_PROGRESS || kind == REPORT_STATE;
    return status == 404 && informs ? REPORT_DROPPED : REPORT_REFUSED;
}
