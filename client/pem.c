#include "pem.h"

#include "b64.h"
#include "hash.h"
#include "mem.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define BEGIN "-----BEGIN CERTIFICATE-----"
#define END   "-----END CERTIFICATE-----"
#define KIND  "SHA256:"

enum { DIGITS = 64 };

/* The next certificate's text with both its lines, and *at behind it; NULL: there is none. */
static const char *next_certificate(const char **at, size_t *ret_len)
{
    const char *begin = strstr(*at, BEGIN);
    const char *end = begin ? strstr(begin + strlen(BEGIN), END) : NULL;
    if (!end)
        return NULL;
    *at = end + strlen(END);
    *ret_len = (size_t)(*at - begin);
    return begin;
}

/* A line's end after it, as OpenSSL wants it. */
static char *copy_certificate(const char *pem, size_t len)
{
    return det_asprintf("%.*s\n", (int)len, pem);
}

char *pem_last(const char *chain)
{
    size_t len = 0, n = 0;
    const char *last = NULL;
    for (const char *at = chain, *one; (one = next_certificate(&at, &n)) != NULL;) {
        last = one;
        len = n;
    }
    return last ? copy_certificate(last, len) : NULL;
}

char *pem_find(const char *chain, const char *fingerprint)
{
    char own[FINGERPRINT_MAX];
    size_t n = 0;
    for (const char *at = chain, *one; (one = next_certificate(&at, &n)) != NULL;) {
        char *pem det_cleanup(freep) = copy_certificate(one, n);
        if (pem_fingerprint(pem, own, NULL) == 0 && strcmp(own, fingerprint) == 0)
            return det_take(pem);
    }
    return NULL;
}

static void add_digits(struct buf *out, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isspace((unsigned char)p[i]))
            buf_add_ch(out, p[i]);
}

int pem_fingerprint(const char *text, char out[FINGERPRINT_MAX], struct det_err *err)
{
    det_cleanup(buf_finish) struct buf digits = BUF_INIT, der = BUF_INIT;
    char hex[HASH_HEX_MAX];
    size_t n = 0;
    const char *at = text, *pem = next_certificate(&at, &n);
    if (!pem)
        return det_fail(err, DET_EINVAL, "no certificate in PEM");
    add_digits(&digits, pem + strlen(BEGIN), n - strlen(BEGIN END));
    int rc = b64_decode(&der, buf_str(&digits), digits.len, err);
    if (rc < 0)
        return det_wrap(err, DET_EINVAL, "a certificate in PEM");
    hash_bytes(HASH_SHA256, buf_str(&der), der.len, hex);
    snprintf(out, FINGERPRINT_MAX, KIND "%.*s", DIGITS, hex);
    return 0;
}

int fingerprint_read(const char *text, char out[FINGERPRINT_MAX], struct det_err *err)
{
    size_t n = (size_t)snprintf(out, FINGERPRINT_MAX, KIND), first = n;
    const char *p = strncasecmp(text, KIND, strlen(KIND)) == 0 ? text + strlen(KIND) : text;
    bool ok = true;
    for (; *p && ok; p++) {
        if (*p == ':')
            continue;
        ok = isxdigit((unsigned char)*p) && n - first < DIGITS;
        if (ok)
            out[n++] = (char)tolower((unsigned char)*p);
    }
    out[n] = '\0';
    if (!ok || n - first != DIGITS)
        return det_fail(err, DET_EINVAL,
                        "'%s' is no fingerprint: that is sha256: and 64 hexadecimal digits, as "
                        "det-master's log has them",
                        text);
    return 0;
}
