#include "join.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "detjoin-"
#define KIND   "SHA256:"

enum { DAY_S = 86400, LOOK_MIN_S = 1, LOOK_MAX_S = 3600, TRIES = 30 };

void join_token_write(const struct join_token *t, char out[JOIN_TOKEN_MAX])
{
    snprintf(out, JOIN_TOKEN_MAX, PREFIX "%s-%s", t->secret, t->fingerprint + strlen(KIND));
}

/* NULL: these are not so many digits in lower case. */
static const char *take_digits(const char *p, char out[JOIN_DIGITS + 1])
{
    if (strspn(p, "0123456789abcdef") != JOIN_DIGITS)
        return NULL;
    memcpy(out, p, JOIN_DIGITS);
    out[JOIN_DIGITS] = '\0';
    return p + JOIN_DIGITS;
}

int join_token_read(const char *text, struct join_token *ret, struct det_err *err)
{
    const char *p = strncmp(text, PREFIX, strlen(PREFIX)) ? NULL : text + strlen(PREFIX);
    memcpy(ret->fingerprint, KIND, sizeof KIND);
    p = p ? take_digits(p, ret->secret) : NULL;
    p = p && *p == '-' ? take_digits(p + 1, ret->fingerprint + strlen(KIND)) : NULL;
    if (p && *p == '\0')
        return 0;
    return det_fail(err, DET_EINVAL,
                    "this is no join token: that is what det agent join-token prints, " PREFIX
                    "... without spaces");
}

int64_t cert_due_s(const struct cert_dates *d)
{
    return d->until_s - (d->until_s - d->from_s) / 3;
}

enum cert_state cert_state(const struct cert_dates *d, bool is_revoked, int64_t now_s)
{
    if (is_revoked)
        return CERT_REVOKED;
    if (now_s >= d->until_s)
        return CERT_EXPIRED;
    if (now_s < d->from_s)
        return CERT_EARLY;
    return now_s >= cert_due_s(d) ? CERT_DUE : CERT_FRESH;
}

struct cert_dates cert_dates_of(int64_t now_s, int64_t life_s)
{
    int64_t before_s = life_s / 3 < DAY_S ? life_s / 3 : DAY_S;
    return (struct cert_dates){now_s - before_s, now_s + life_s};
}

int64_t cert_look_ms(const struct cert_dates *d, int64_t now_s)
{
    int64_t wait_s = cert_due_s(d) - now_s;
    if (now_s >= d->until_s)
        wait_s = LOOK_MAX_S;
    else if (wait_s <= 0)
        wait_s = (d->until_s - now_s) / TRIES;
    wait_s = wait_s < LOOK_MIN_S ? LOOK_MIN_S : wait_s > LOOK_MAX_S ? LOOK_MAX_S : wait_s;
    return wait_s * 1000;
}
