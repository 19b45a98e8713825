#include "client.h"

#include <stdio.h>
#include <string.h>

#define ERROR_BODY_MAX ((size_t)1 << 20)

static const struct status_row {
    int status;
    const char *reason; /* NULL: any */
    int code;
} table[] = {
    {400, "FailedPrecondition", DET_ESTATE},
    {400, NULL, DET_EINVAL},
    {401, NULL, DET_EAUTH},
    {403, NULL, DET_EPERM},
    {404, NULL, DET_ENOENT},
    {408, NULL, DET_ETIMEOUT},
    {409, "AlreadyExists", DET_EEXIST},
    {409, NULL, DET_ESTALE},
    {413, NULL, DET_ETOOBIG},
    {429, NULL, DET_EUNAVAIL},
    {501, NULL, DET_EUNIMPL},
    {502, NULL, DET_EUNAVAIL},
    {503, NULL, DET_EUNAVAIL},
    {504, NULL, DET_ETIMEOUT},
};

static int code_of(int status, const char *reason)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(table); i++)
        if (table[i].status == status && (!table[i].reason || strcmp(table[i].reason, reason) == 0))
            return table[i].code;
    return status >= 500 ? DET_EIO : DET_EINVAL;
}

/* {"error":{"reason","error"}}, {"error":"text"}, {"error":{"message"}} or {"message"}; borrowed
 * from j. */
static const char *text_of(const json_t *j, const char **ret_reason)
{
    const json_t *e = json_obj(j, "error");
    if (e) {
        *ret_reason = json_str(e, "reason", "");
        return json_str(e, "error", json_str(e, "message", NULL));
    }
    return json_str(j, "error", json_str(j, "message", NULL));
}

/* The first line of a body that is no JSON, cut to a readable length. */
static void plain_text(const char *body, size_t len, char *out, size_t out_len)
{
    size_t n = 0;
    while (n < len && n + 1 < out_len && (unsigned char)body[n] >= ' ')
        n++;
    snprintf(out, out_len, "%.*s", (int)n, body ? body : "");
}

int client_status(int status, const char *body, size_t len, struct det_err *err)
{
    if (status >= 200 && status < 300)
        return 0;
    JSON_OWN j = body && len > 0 && len <= ERROR_BODY_MAX ? json_parse(body, len, NULL) : NULL;
    const char *reason = "", *text = json_is_object(j) ? text_of(j, &reason) : NULL;
    int code = code_of(status, reason);
    char plain[256] = "";
    if (!text && !j)
        plain_text(body, len, plain, sizeof plain);
    if (text)
        return det_fail(err, code, "%s", text);
    return det_fail(err, code, "HTTP status %d (%s)%s%s", status, det_strerror(code),
                    plain[0] ? ": " : "", plain);
}
